// `counterfoil contract`: what a contract lets happen by itself and what not, what is left open in it, and a draft of one.

import { existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { boundTools } from '../contracts/bound-tools.ts';
import { readShipped, shippedFiles } from '../contracts/catalogue.ts';
import type { Pauses } from '../contracts/contract-lints.ts';
import { type ContractReport, type Note, placeLints, reportContract } from '../contracts/contract-report.ts';
import { draftFromOpenApi } from '../contracts/draft-openapi.ts';
import { draftFromTools } from '../contracts/draft-tools.ts';
import {
  APPROVAL_LIFETIME_DEFAULT,
  type GatewayConfig,
  RESUME_WINDOW_DEFAULT,
} from '../contracts/gateway-config.ts';
import { lintAgreement, waiverFor } from '../contracts/going-live.ts';
import { type GatewaySetup, loadOwnersFile } from '../contracts/load.ts';
import { closest, formatProblem } from '../contracts/problem.ts';
import { argumentsOfTools, readToolList, type ToolListing } from '../contracts/tool-listing.ts';
import { reasonOf } from './gateway-setup.ts';
import { printable } from './lines.ts';
import { CommandFault, EXIT, print, printJson, say } from './output.ts';
import { nameOf } from './server-name.ts';
import { toType } from './starter.ts';
import { packageVersion } from './version.ts';

export interface CheckOptions {
  readonly config?: string;
  readonly tools?: string;
  readonly strict?: boolean;
  readonly json?: boolean;
}

interface GivenConfig {
  readonly file: string;
  readonly setup: GatewaySetup;
}

/**
 * Ends with 2 where a file is wrong, where `--config` leaves something open that a person has to name or waive, and
 * with `--strict` where anything is left open.
 */
export function checkContracts(files: readonly string[], options: CheckOptions): number {
  const given = options.config === undefined ? undefined : readConfig(options.config);
  const config = given?.setup.config.value;
  const listing = options.tools === undefined ? undefined : readTools(options.tools);
  const reports = textsToCheck(files, given).map(({ file, text }) =>
    reportContract(text, file, {
      today: today(),
      pauses: pausesOf(config),
      ...(listing === undefined ? {} : { argumentsOf: argumentsOfTools(listing), tools: listing.tools }),
    }),
  );
  const agreements = given === undefined ? [] : agreementNotes(given, reports);
  const waived = (note: Note) =>
    waiverFor(config, note.code as Parameters<typeof waiverFor>[1], toolOf(note));
  const open = agreements.filter((note) => waived(note) === undefined);
  const notes = [...reports.flatMap((report) => report.notes), ...agreements];
  const errors = reports.flatMap((report) => report.problems);
  if (options.json === true) printJson(asJson(reports, agreements, config));
  else printReports(reports, agreements, config);
  if (errors.length > 0 || open.length > 0) return EXIT.usage;
  const isStrict = options.strict === true && notes.some((note) => waived(note) === undefined);
  return isStrict ? EXIT.usage : EXIT.done;
}

function today(): string {
  return new Date().toISOString().slice(0, 10);
}

function toolOf({ operation }: Note): string {
  return operation ?? '';
}

export function pausesOf(config: GatewayConfig | undefined): Pauses {
  return {
    resumeWindow: config?.resume_window ?? RESUME_WINDOW_DEFAULT,
    approvalLifetime: config?.limits?.approval_lifetime ?? APPROVAL_LIFETIME_DEFAULT,
  };
}

function textsToCheck(files: readonly string[], given: GivenConfig | undefined) {
  if (files.length > 0) return files.map((file) => readContract(file));
  if (given === undefined) {
    return shippedFiles('contract').map((file) => ({ file, text: readShipped(file) }));
  }
  const folder = dirname(resolve(given.file));
  return (given.setup.config.value.contracts ?? []).map((file) => ({
    file,
    text: readText(resolve(folder, file), file),
  }));
}

/** A file, or one of the shipped contracts by its id. */
function readContract(file: string): { readonly file: string; readonly text: string } {
  const shipped = `${file}.contract.yaml`;
  if (!existsSync(file) && shippedFiles('contract').includes(shipped)) {
    return { file: shipped, text: readShipped(shipped) };
  }
  if (!existsSync(file)) {
    const ids = shippedFiles('contract').map((name) => name.replace(/\.contract\.yaml$/, ''));
    const near = closest(file, ids);
    if (near !== undefined) {
      throw new CommandFault(
        EXIT.usage,
        `${printable(file)} cannot be read: there is no such file, and no contract of that name is shipped; did you mean ${near}?`,
      );
    }
  }
  return { file, text: readText(resolve(file), file) };
}

function readText(path: string, file: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw new CommandFault(EXIT.usage, `${printable(file)} cannot be read: ${reasonOf(cause)}.`);
  }
}

/** @throws {CommandFault} where the configuration, or a file that it names, cannot be used */
export function readConfig(file: string): GivenConfig {
  const folder = dirname(resolve(file));
  const setup = loadOwnersFile(readText(resolve(file), file), file, {
    today: today(),
    readText(name) {
      try {
        return { text: readFileSync(resolve(folder, name), 'utf8') };
      } catch (cause) {
        return { reason: reasonOf(cause) };
      }
    },
  });
  if (setup.ok) return { file, setup };
  throw new CommandFault(EXIT.usage, setup.problems.map(formatProblem).join('\n'));
}

function readTools(file: string): ToolListing {
  const listing = readToolList(readText(resolve(file), file), file);
  if (listing.ok) return listing;
  throw new CommandFault(EXIT.usage, listing.problems.map(formatProblem).join('\n'));
}

/** What each tool that writes has to have before it goes live. */
function agreementNotes({ setup }: GivenConfig, reports: readonly ContractReport[]): readonly Note[] {
  const config = setup.config.value;
  const contracts = reports.flatMap(({ contract }) => contract ?? []);
  return boundTools(setup, contracts).flatMap(({ contract, tool }) =>
    placeLints(
      lintAgreement(config, tool, contract).map((lint) => ({ ...lint, operation: tool })),
      setup.config.source,
    ),
  );
}

// ── Words ──────────────────────────────────────────────────────────────────────────────────────────────────

function printReports(
  reports: readonly ContractReport[],
  agreements: readonly Note[],
  config: GatewayConfig | undefined,
): void {
  for (const report of reports) {
    const { contract, file } = report;
    if (contract === undefined) print(`${printable(file)} is refused:`);
    else {
      const { destination, id, revision } = contract;
      print(
        `${id}, revision ${revision}: ${printable(destination.name)} (${destination.protocol}), ${printable(file)}`,
      );
    }
    for (const operation of report.operations) printOperation(operation);
    for (const problem of report.problems) print(`  ${printable(formatProblem(problem))}`);
    for (const note of report.notes) print(noteLine(note, config));
    print('');
  }
  for (const note of agreements) print(noteLine(note, config));
  const counts = {
    errors: reports.reduce((sum, { problems }) => sum + problems.length, 0),
    notes: reports.reduce((sum, { notes }) => sum + notes.length, agreements.length),
  };
  say(
    `${counted(reports.length, 'contract')} checked: ${counted(counts.errors, 'error')}, ${counted(counts.notes, 'note')}.`,
  );
}

const THEN = { by_itself: 'by itself', settled: 'settled', person: 'a person' } as const;

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function printOperation({
  explained,
  guards,
  id,
  match,
  openQuestions,
}: ContractReport['operations'][number]): void {
  print(`  ${id} (${match.map(printable).join('; ')})`);
  for (const guard of guards) print(`    guard      ${printable(guard)}`);
  if (guards.length === 0) print('    guard      none: nothing makes a second sending safe');
  for (const { sentence, then } of explained) print(`    ${THEN[then].padEnd(10)} ${printable(sentence)}`);
  for (const question of openQuestions) print(`    open       ${printable(question)}`);
}

function noteLine(note: Note, config: GatewayConfig | undefined): string {
  const waiver = waiverFor(config, note.code as Parameters<typeof waiverFor>[1], toolOf(note));
  const end =
    waiver === undefined
      ? ` [${note.code}]`
      : ` [${note.code}, waived by ${waiver.by} on ${waiver.on}: ${waiver.because}]`;
  return `  ${printable(formatProblem(note) + end)}`;
}

function asJson(
  reports: readonly ContractReport[],
  agreements: readonly Note[],
  config: GatewayConfig | undefined,
): object {
  const noteJson = (note: Note) => {
    const waiver = waiverFor(config, note.code as Parameters<typeof waiverFor>[1], toolOf(note));
    return { ...note, ...(waiver === undefined ? {} : { waiver }) };
  };
  return {
    contracts: reports.map(({ contract, file, notes, operations, problems }) => ({
      file,
      ...(contract === undefined ? {} : { id: contract.id, revision: contract.revision }),
      operations,
      problems,
      notes: notes.map(noteJson),
    })),
    agreements: agreements.map(noteJson),
  };
}

// ── Draft ──────────────────────────────────────────────────────────────────────────────────────────────────

export interface DraftOptions {
  readonly openapi?: string;
  readonly tools?: string;
  readonly id?: string;
  readonly json?: boolean;
}

/** A contract to start from: everything in it is assumed, and says what is to be found out. */
export async function draftContract(command: readonly string[], options: DraftOptions): Promise<number> {
  const { id, openapi, tools } = options;
  const given = [openapi, tools, command[0]].filter((one) => one !== undefined);
  if (given.length !== 1) {
    throw new CommandFault(
      EXIT.usage,
      `A draft is made of one description: --openapi FILE, --tools FILE with what tools/list gave, or the MCP server itself: ${toType('contract draft -- COMMAND ARGS…')}`,
    );
  }
  const file = openapi ?? tools;
  const text = file === undefined ? await listedBy(command) : readText(resolve(file), file);
  const name = file ?? nameOf(command);
  const drafted = (openapi === undefined ? draftFromTools : draftFromOpenApi)(text, name, {
    today: today(),
    ...(id === undefined ? {} : { id }),
  });
  if (!drafted.ok) throw new CommandFault(EXIT.usage, drafted.problems.map(formatProblem).join('\n'));
  if (options.json === true) printJson(drafted.contract);
  else print(drafted.text.trimEnd());
  say(
    `${counted(drafted.contract.operations.length, 'write')}, and all of it is assumed: answer the open questions, give each fact its source, then run ${toType('contract check')} on the file.`,
  );
  return EXIT.done;
}

const LIST_TIMEOUT_MS = 30_000;
const SAID_MAX = 64 * 1024;

/** What a server gives for tools/list; nothing of it is called. @throws {CommandFault} with its last words */
async function listedBy(command: readonly string[]): Promise<string> {
  const [program = '', ...args] = command;
  const { listStdioTools } = await import('../compose.ts');
  let said = '';
  const listed = await listStdioTools({
    destination: nameOf(command),
    command: program,
    args,
    env: Object.fromEntries(
      Object.entries(process.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    ),
    cwd: undefined,
    timeoutMs: LIST_TIMEOUT_MS,
    version: packageVersion(),
    onStderr: (chunk) => {
      if (said.length < SAID_MAX) said += chunk.toString('utf8');
    },
  });
  if (listed.answered) return listed.text;
  const last = said.trim().split('\n').at(-1) ?? '';
  const words = last === '' ? '' : `; it said: ${last.slice(0, 200)}`;
  throw new CommandFault(
    EXIT.usage,
    `The server ${printable(program)} did not list its tools: ${printable(`${listed.detail}${words}`)}.`,
  );
}
