// Which servers one process is to stand in front of: our own file, or one that MCP clients have, with its variables
// filled in. One server that cannot be served does not stop the others: it is listed with its sentence.
//
// Shapes: `mcpServers` (modelcontextprotocol.io/docs/develop/connect-local-servers; Claude Code, Cursor), `servers`
// with `inputs` (code.visualstudio.com/docs/agents/reference/mcp-configuration).

import { readDocument } from './document.ts';
import { loadServeConfig, type Refused } from './load.ts';
import { listed } from './problem.ts';
import type { ServeConfig, ServedServer } from './serve-config.ts';

export type ListedServer =
  | { readonly name: string; readonly server: ServedServer; readonly problem?: undefined }
  /** A sentence: why it cannot be served. */
  | { readonly name: string; readonly problem: string; readonly server?: undefined };

export interface ServersFile {
  readonly ok: true;
  readonly listen: ServeConfig['listen'];
  readonly webhooks: NonNullable<ServeConfig['webhooks']>;
  readonly notify: ServeConfig['notify'];
  /** In the order of the file; names are as they stand in addresses. */
  readonly servers: readonly ListedServer[];
}

export interface ReadingSurroundings {
  readonly environment: { readonly [name: string]: string | undefined };
  readonly home: string;
}

type Members = { readonly [member: string]: unknown };

export function readServersFile(
  text: string,
  fileName: string,
  surroundings: ReadingSurroundings,
): ServersFile | Refused {
  const plain = withoutComments(text);
  const read = readDocument(plain, fileName);
  const entries = read.ok ? clientEntries(read.value) : undefined;
  if (entries !== undefined) {
    const taken = new Map<string, string>();
    return {
      ok: true,
      listen: undefined,
      webhooks: [],
      notify: undefined,
      servers: Object.entries(entries).map(([name, entry]) => ofClient(name, entry, taken, surroundings)),
    };
  }
  const loaded = loadServeConfig(plain, fileName);
  if (!loaded.ok) return loaded;
  const { listen, notify, servers, webhooks = [] } = loaded.config;
  return {
    ok: true,
    listen,
    webhooks,
    notify,
    servers: Object.entries(servers).map(([name, server]) => filledIn(name, server, surroundings)),
  };
}

/** Files of clients are JSON, in which some allow comments: they become spaces, so that every position stays. */
function withoutComments(text: string): string {
  if (!/^\s*(?:\{|\/\/|\/\*)/.test(text)) return text;
  return text.replace(/"(?:\\.|[^"\\])*"|\/\/[^\n]*|\/\*[^]*?\*\//g, (part) =>
    part.startsWith('"') ? part : part.replace(/[^\n]/g, ' '),
  );
}

/** The entries of a file in a client's shape. Whatever else stands in such a file is not ours to judge. */
function clientEntries(value: unknown): Members | undefined {
  if (!isMap(value)) return undefined;
  if (isMap(value['mcpServers'])) return value['mcpServers'];
  const { inputs, servers } = value;
  if (!isMap(servers)) return undefined;
  const isTyped = Object.values(servers).some((entry) => isMap(entry) && entry['type'] !== undefined);
  return inputs !== undefined || isTyped ? servers : undefined;
}

function isMap(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

// ── One entry of a client's file ───────────────────────────────────────────────────────────────────────────

/** What an entry may say of how it is reached over HTTP, all meaning Streamable HTTP. */
const HTTP_TYPES: readonly unknown[] = ['http', 'streamable-http', 'streamableHttp'];

function ofClient(
  entryName: string,
  entry: unknown,
  taken: Map<string, string>,
  surroundings: ReadingSurroundings,
): ListedServer {
  const name = addressName(entryName);
  const twin = taken.get(name);
  if (twin !== undefined) {
    return { name: entryName, problem: `In an address its name would be ${name}, as that of ${twin} is.` };
  }
  taken.set(name, entryName);
  const server = readEntry(entry);
  return typeof server === 'string' ? { name, problem: server } : filledIn(name, server, surroundings);
}

/** As a part of an address, and as the name of a destination. */
function addressName(name: string): string {
  const plain = name
    .normalize('NFKD')
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+|-+$/g, '')
    .slice(0, 64);
  return plain === '' ? 'server' : plain;
}

/** @returns the sentence that says why not, where it is none that can be served */
function readEntry(entry: unknown): ServedServer | string {
  if (!isMap(entry)) return 'Its entry is no map of members.';
  const { command, args = [], env = {}, cwd, envFile, headers = {}, type, config } = entry;
  const url = entry['url'] ?? entry['serverUrl'];
  if (entry['disabled'] === true || entry['enabled'] === false) return 'It is switched off in the file.';
  if (command !== undefined && url !== undefined)
    return 'It says both command and url; only one of them can be meant.';
  if (config !== undefined && typeof config !== 'string') return 'Its config is not the name of a file.';
  const rules = config === undefined ? {} : { config };
  if (url !== undefined) {
    if (type === 'sse')
      return 'It is of the type sse, the older transport that no gateway speaks; ask its maker for Streamable HTTP.';
    if (type !== undefined && !HTTP_TYPES.includes(type))
      return `It has a url, and the type ${JSON.stringify(type)}.`;
    const texts = textsOf(headers);
    if (typeof url !== 'string' || texts === undefined)
      return 'Its url is no text, or its headers are no map of texts.';
    return { url, headers: texts, ...rules };
  }
  if (command === undefined) return 'It says neither command nor url; one of them is needed.';
  if (type !== undefined && type !== 'stdio')
    return `It has a command, and the type ${JSON.stringify(type)}.`;
  if (envFile !== undefined) return 'It names an envFile, which is not read here: give its variables in env.';
  const environment = textsOf(env);
  if (typeof command !== 'string' || command === '') return 'Its command is no text.';
  if (!Array.isArray(args) || !args.every((arg) => typeof arg === 'string'))
    return 'Its args are no list of texts.';
  if (environment === undefined) return 'Its env is no map of texts.';
  if (cwd !== undefined && typeof cwd !== 'string') return 'Its cwd is no text.';
  if (isBehindUs([command, ...args]))
    return 'It is behind counterfoil already: name the server itself, as it stands after the --.';
  return { command, args, env: environment, ...(cwd === undefined ? {} : { cwd }), ...rules };
}

function isBehindUs(command: readonly string[]): boolean {
  const own = command.findIndex((part) => /(^|[\\/])counterfoil(@[\w.-]+|\.js|\.cmd)?$/.test(part));
  return own !== -1 && command[own + 1] === 'mcp';
}

/** Numbers and truth values are taken as clients take them. */
function textsOf(value: unknown): { readonly [name: string]: string } | undefined {
  if (!isMap(value)) return undefined;
  const entries = Object.entries(value);
  return entries.every(([, each]) => ['string', 'number', 'boolean'].includes(typeof each))
    ? Object.fromEntries(entries.map(([name, each]) => [name, String(each)]))
    : undefined;
}

// ── Variables ──────────────────────────────────────────────────────────────────────────────────────────────

function filledIn(name: string, server: ServedServer, surroundings: ReadingSurroundings): ListedServer {
  const problems = new Set<string>();
  const fill = (text: string): string =>
    text.replace(/\$\{([^{}]*)\}/g, (_, inside: string) => {
      const value = valueOf(inside, surroundings);
      if (typeof value === 'string') return value;
      problems.add(value.problem);
      return '';
    });
  const { command, args, env, cwd, url, headers, config } = server;
  const filled: ServedServer = {
    ...(command === undefined ? {} : { command: fill(command) }),
    ...(args === undefined ? {} : { args: args.map(fill) }),
    ...(env === undefined ? {} : { env: eachFilled(env, fill) }),
    ...(cwd === undefined ? {} : { cwd: fill(cwd) }),
    ...(url === undefined ? {} : { url: fill(url) }),
    ...(headers === undefined ? {} : { headers: eachFilled(headers, fill) }),
    ...(config === undefined ? {} : { config }),
  };
  if (problems.size > 0) return { name, problem: `It ${listed([...problems])}.` };
  if (filled.url !== undefined && !/^https?:\/\//.test(filled.url)) {
    // The address may hold a secret: it is not repeated.
    return { name, problem: 'Its url is no http or https address.' };
  }
  return { name, server: filled };
}

function eachFilled(
  texts: { readonly [name: string]: string },
  fill: (text: string) => string,
): { readonly [name: string]: string } {
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, fill(text)]));
}

/**
 * `${NAME}`, `${NAME:-otherwise}` (Claude Code), `${env:NAME}`, `${input:ID}` and the predefined names of VS Code and
 * Cursor. A variable that is not set stays literal in one client and becomes nothing in another; here a server that
 * needs it is not served.
 */
function valueOf(
  inside: string,
  { environment, home }: ReadingSurroundings,
): string | { readonly problem: string } {
  const named = /^(?:env:)?([A-Za-z_]\w*)(?::-(.*))?$/s.exec(inside);
  if (named !== null && !PREDEFINED.test(inside)) {
    const [, name = '', otherwise] = named;
    const value = environment[name];
    // As in a shell, `:-` counts for one that is empty, too.
    if (value !== undefined && (value !== '' || otherwise === undefined)) return value;
    return otherwise ?? { problem: `uses the variable ${name}, which is not set` };
  }
  if (inside === 'userHome') return home;
  const input = /^input:(.+)$/s.exec(inside)?.[1];
  if (input !== undefined) {
    const name = `COUNTERFOIL_INPUT_${input.replace(/\W/g, '_').toUpperCase()}`;
    return environment[name] ?? { problem: `asks for the input ${input}: set ${name} in its place` };
  }
  return { problem: `uses \${${inside}}, which only its client can fill in` };
}

const PREDEFINED = /^(userHome|workspaceFolder|workspaceFolderBasename|pathSeparator|cwd|file)$/;
