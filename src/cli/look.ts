// Starting servers, or asking at their address, to see what they are: each for a limited time, some at once, what they
// say on stderr kept.

import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join, resolve as resolvePath } from 'node:path';
import { parseEnv } from 'node:util';
import type { ServerEntry } from '../clients/entries.ts';
import { maskWords, secretsOf, withoutSecrets } from '../clients/masking.ts';
import type { Address } from '../clients/own-command.ts';
import type { Surroundings } from '../clients/places.ts';
import { fillIn, type ReadyLaunch } from '../clients/variables.ts';
import { inspectHttpServer, inspectStdioServer } from '../compose.ts';
import type { OwnerRule } from '../engine/ledger.ts';
import type { ServerInspection } from '../gateway/inspect-server.ts';
import type { SurveyedServer } from './survey.ts';
import { packageVersion } from './version.ts';

export type Look =
  | (ServerInspection & { readonly answered: true })
  /** A sentence without its subject, which is the server; secrets are masked in it. */
  | {
      readonly answered: false;
      readonly problem: string;
      /** Behind us it could not work at all, whoever asks for it. */
      readonly isBeyondUs?: true;
    };

export interface LookOptions {
  readonly data: string;
  readonly surroundings: Surroundings;
  readonly ownerRules: readonly OwnerRule[];
  readonly timeoutMs: number;
}

const AT_ONCE_MAX = 4;

/** In the order of the servers. */
export async function lookAtAll(
  servers: readonly SurveyedServer[],
  options: LookOptions,
): Promise<ReadonlyMap<SurveyedServer, Look>> {
  const looks = new Map<SurveyedServer, Look>();
  const waiting = [...servers];
  const next = async (): Promise<void> => {
    for (let server = waiting.shift(); server !== undefined; server = waiting.shift()) {
      looks.set(server, await lookAt(server, options));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE_MAX }, next));
  return looks;
}

const STDERR_MAX_BYTES = 64 * 1024;

async function lookAt(server: SurveyedServer, options: LookOptions): Promise<Look> {
  const { entry, place } = server;
  const filled = fillIn(entry, place.client, options.surroundings);
  const verb = isAtAddress(entry) ? 'asked' : 'started';
  if (!filled.ok) return { answered: false, problem: `was not ${verb}: it ${filled.problem}` };
  return filled.address === undefined
    ? lookAtCommand(server, filled.launch, options)
    : lookAtAddress(server, filled.address, options);
}

/** Whether it is reached by an address, by its client or by us. */
export function isAtAddress({ server }: ServerEntry): boolean {
  return server.kind === 'http' || (server.kind === 'stdio' && server.own?.address !== undefined);
}

async function lookAtAddress(
  { entry, standing }: SurveyedServer,
  address: Address,
  options: LookOptions,
): Promise<Look> {
  if (!URL.canParse(address.url)) {
    return { answered: false, problem: 'was not asked: its address is none' };
  }
  const inspection = await inspectHttpServer({
    destination: standing.kind === 'cannot' ? entry.name : standing.name,
    ...address,
    ownerRules: options.ownerRules,
    timeoutMs: options.timeoutMs,
    version: packageVersion(),
  });
  if (inspection.answered && !inspection.offersSignIn) return inspection;
  if (inspection.answered) return { answered: false, problem: OFFERS_SIGN_IN };
  if (inspection.refusal !== undefined) {
    return { answered: false, problem: REFUSALS[inspection.refusal], isBeyondUs: true };
  }
  const secrets = secretsOf(entry, [address.url, ...Object.values(address.headers)]);
  return { answered: false, problem: `did not answer: ${withoutSecrets(inspection.detail, secrets)}` };
}

const OFFERS_SIGN_IN =
  'offers a sign-in (OAuth), and only its client would hold the token: behind us it would be asked without one';

const REFUSALS = {
  sign_in:
    'asks for a sign-in (OAuth), and only its client holds the token: it cannot be guarded, and what is written there is not recorded',
  credential:
    'does not take the credential in its headers (HTTP 401), and where its client signs in instead, only the client holds the token: it cannot be guarded',
  older_transport:
    'does not speak Streamable HTTP, and the older transport (HTTP+SSE) is none that the gateway speaks: it cannot be guarded',
} as const;

async function lookAtCommand(
  server: SurveyedServer,
  launch: ReadyLaunch,
  options: LookOptions,
): Promise<Look> {
  const { entry, standing } = server;
  if (launch.cwd !== undefined && !(await isFolder(launch.cwd)))
    return { answered: false, problem: `was not started: its folder ${launch.cwd} is not there` };
  const fromFile = await envFileValues(launch.envFile, launch.cwd);
  if ('problem' in fromFile) return { answered: false, problem: `was not started: ${fromFile.problem}` };
  const own = { ...fromFile.values, ...launch.env };
  let said = Buffer.alloc(0);
  const inspection = await inspectStdioServer({
    destination: standing.kind === 'cannot' ? entry.name : standing.name,
    command: launch.command,
    args: launch.args,
    env: { ...definedOnly(options.surroundings.environment), ...own },
    cwd: launch.cwd,
    ownerRules: options.ownerRules,
    timeoutMs: options.timeoutMs,
    version: packageVersion(),
    onStderr: (chunk) => {
      if (said.length < STDERR_MAX_BYTES) said = Buffer.concat([said, chunk]);
    },
  });
  if (inspection.answered) return inspection;
  const secrets = secretsOf(entry, [
    ...Object.values(own),
    ...launch.args.filter((each) => maskWords(each) !== each),
  ]);
  const kept = said.length === 0 ? undefined : await keepWords(options.data, entry.name, said);
  const lastWords = said.toString('utf8').trim().split('\n').at(-1)?.trim() ?? '';
  const words = [
    `did not answer: ${withoutSecrets(inspection.detail, secrets)}`,
    ...(lastWords === '' ? [] : [`it said: ${withoutSecrets(lastWords, secrets).slice(0, 200)}`]),
    ...(kept === undefined ? [] : [`all of it is in ${kept}`]),
  ];
  return { answered: false, problem: words.join('; ') };
}

async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() === true;
}

/** Its words may hold secrets: they are kept beside the ledger, and not shown whole. */
async function keepWords(data: string, name: string, said: Buffer): Promise<string | undefined> {
  try {
    const folder = join(data, 'server-words');
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const file = join(folder, `${name.replace(/[^A-Za-z0-9._-]+/g, '-')}.log`);
    await writeFile(file, said, { mode: 0o600 });
    return file;
  } catch {
    return undefined;
  }
}

async function envFileValues(
  file: string | undefined,
  cwd: string | undefined,
): Promise<{ readonly values: Record<string, string> } | { readonly problem: string }> {
  if (file === undefined) return { values: {} };
  try {
    return { values: definedOnly(parseEnv(await readFile(resolvePath(cwd ?? '.', file), 'utf8'))) };
  } catch {
    return { problem: `its envFile ${file} cannot be read` };
  }
}

function definedOnly(values: { readonly [name: string]: string | undefined }): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}
