// The servers that a client's configuration names, read from its text: JSON, with the comments that some allow.

import { getNodeValue, type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser';
import { type Command, findOwnCommand, type OwnCommand } from './own-command.ts';
import type { Place } from './places.ts';

/** Members that lead from the root of a file to an entry; the last is its name. */
export type EntryPath = readonly string[];

export interface ServerEntry {
  readonly name: string;
  readonly path: EntryPath;
  /** The folder that a client started in it has as its own; `undefined` where it is not known. */
  readonly workspace: string | undefined;
  /** The entry's value exactly as it is written. */
  readonly text: string;
  readonly server: EntryServer;
  /** The client does not start it now. */
  readonly isOff: boolean;
}

export type EntryServer =
  | { readonly kind: 'stdio'; readonly launch: Launch; readonly own: OwnCommand | undefined }
  /** Reached by an address, which may hold a secret: only `shownAddress` of it is ever printed. */
  | { readonly kind: 'http'; readonly url: string; readonly headers: { readonly [name: string]: string } }
  | { readonly kind: 'unknown'; readonly problem: string };

/** As it is written: variables are not filled in. */
export interface Launch extends Command {
  readonly env: { readonly [name: string]: string };
  readonly cwd: string | undefined;
  /** A file with more of the environment (VS Code). */
  readonly envFile: string | undefined;
}

export type ReadEntries =
  | { readonly ok: true; readonly entries: readonly ServerEntry[] }
  | { readonly ok: false; readonly problem: string };

/** Every server of one file; where the file as a whole cannot be read, one sentence. `text` has no BOM. */
export function readEntries(
  text: string,
  place: Pick<Place, 'member' | 'client'>,
  workspace?: string,
): ReadEntries {
  if (text.trim() === '') return { ok: true, entries: [] };
  const parsed = parseConfiguration(text);
  if (!parsed.ok) return parsed;
  const { root } = parsed;
  const groups: { readonly path: EntryPath; readonly workspace: string | undefined }[] = [
    { path: [place.member], workspace },
  ];
  // Claude Code keeps what was added for one project alone under the project's folder.
  if (place.client === 'claude-code') {
    for (const project of memberNames(root, ['projects'])) {
      groups.push({ path: ['projects', project, place.member], workspace: project });
    }
  }
  const entries: ServerEntry[] = [];
  for (const group of groups) {
    const found = findNode(root, group.path);
    if (found === 'missing') continue;
    if (found === 'twice') return { ok: false, problem: `it has ${group.path.join('.')} twice` };
    if (found.type === 'null') continue;
    if (found.type !== 'object')
      return { ok: false, problem: `its ${group.path.join('.')} is no object with a member for each server` };
    entries.push(...groupEntries(text, found, group));
  }
  return { ok: true, entries };
}

/** The tree of a text; a sentence's end with line and column where it is no JSON. */
export function parseConfiguration(
  text: string,
): { readonly ok: true; readonly root: Node } | { readonly ok: false; readonly problem: string } {
  const errors: ParseError[] = [];
  // Trailing commas are what people leave behind; clients that refuse them say so themselves.
  const root = parseTree(text, errors, { allowTrailingComma: true });
  const [first] = errors;
  if (first !== undefined) {
    return { ok: false, problem: `it is not JSON (${positionOf(text, first.offset)}: ${errorWords(first)})` };
  }
  if (root?.type !== 'object') return { ok: false, problem: 'it is JSON, but no object' };
  return { ok: true, root };
}

/** The value under some members; of two members of one name nobody can say which one counts. */
export function findNode(root: Node, path: EntryPath): Node | 'missing' | 'twice' {
  let node = root;
  for (const name of path) {
    const found = propertiesOf(node).filter((property) => property.name === name);
    if (found.length > 1) return 'twice';
    const [only] = found;
    if (only === undefined) return 'missing';
    node = only.value;
  }
  return node;
}

interface Property {
  readonly name: string;
  readonly value: Node;
}

export function propertiesOf(node: Node): readonly Property[] {
  if (node.type !== 'object') return [];
  return (node.children ?? []).flatMap(({ children }) => {
    const [key, value] = children ?? [];
    return key === undefined || value === undefined ? [] : [{ name: String(key.value), value }];
  });
}

function memberNames(root: Node, path: EntryPath): readonly string[] {
  const found = findNode(root, path);
  return typeof found === 'string' ? [] : propertiesOf(found).map(({ name }) => name);
}

function groupEntries(
  text: string,
  group: Node,
  { path, workspace }: { readonly path: EntryPath; readonly workspace: string | undefined },
): readonly ServerEntry[] {
  const properties = propertiesOf(group);
  return properties.map(({ name, value }) => ({
    name,
    path: [...path, name],
    workspace,
    text: textOf(text, value),
    isOff: isOff(value),
    server:
      properties.filter((other) => other.name === name).length > 1
        ? {
            kind: 'unknown',
            problem: 'there are two entries of this name, and which one counts is not known',
          }
        : readServer(value),
  }));
}

export function textOf(text: string, { offset, length }: Node): string {
  return text.slice(offset, offset + length);
}

function isOff(value: Node): boolean {
  const member = (name: string): unknown =>
    propertiesOf(value).find((each) => each.name === name)?.value.value;
  return member('disabled') === true || member('enabled') === false;
}

function readServer(node: Node): EntryServer {
  const unknown = (problem: string): EntryServer => ({ kind: 'unknown', problem });
  if (node.type !== 'object') return unknown('it is no object');
  const properties = propertiesOf(node);
  const doubled = properties.find(
    ({ name }, index) => properties.findIndex((each) => each.name === name) < index,
  );
  if (doubled !== undefined) return unknown(`it has the member ${doubled.name} twice`);
  const members: { readonly [name: string]: unknown } = Object.fromEntries(
    properties.map(({ name, value }) => [name, getNodeValue(value)]),
  );
  const { command, args = [], env = {}, cwd, envFile, url, type } = members;
  if (command === undefined) return readAddress(members);
  if (url !== undefined) return unknown('it has both a command and a url');
  if (typeof command !== 'string' || command === '') return unknown('its command is no text');
  if (type !== undefined && type !== 'stdio') return unknown(`it has a command, and its type is not stdio`);
  if (!isTextList(args)) return unknown('its args are no list of texts');
  if (typeof env !== 'object' || env === null || Array.isArray(env)) return unknown('its env is no object');
  const refused = optionalTexts({ cwd, envFile });
  if (refused !== undefined) return unknown(`its ${refused} is no text`);
  if (members['sandboxEnabled'] === true) {
    return unknown('its client runs it in a sandbox, in which nothing could be recorded');
  }
  const launch: Launch = {
    command,
    args,
    env: stringsOf(env),
    cwd: cwd as string | undefined,
    envFile: envFile as string | undefined,
  };
  return { kind: 'stdio', launch, own: findOwnCommand(launch) };
}

/** What an entry may say of how it is reached over HTTP, all meaning Streamable HTTP. */
const HTTP_TYPES: readonly unknown[] = ['http', 'streamable-http', 'streamableHttp'];
/** Members by which a client signs in by itself (code.claude.com/docs/en/mcp: the first two; cursor.com/docs/context/mcp). */
const SIGN_IN = ['oauth', 'headersHelper', 'auth'] as const;

function readAddress(members: { readonly [name: string]: unknown }): EntryServer {
  const unknown = (problem: string): EntryServer => ({ kind: 'unknown', problem });
  const { url, serverUrl, headers = {}, type } = members;
  const address = url ?? serverUrl;
  if (address === undefined) return unknown('it has neither a command nor a url');
  if (url !== undefined && serverUrl !== undefined) return unknown('it has both a url and a serverUrl');
  if (typeof address !== 'string') return unknown('its url is no text');
  if (type === 'sse') {
    return unknown('it is of the type sse, the older transport (HTTP+SSE), which the gateway does not speak');
  }
  if (type !== undefined && !HTTP_TYPES.includes(type))
    return unknown('it has a url, and its type is not http');
  const signIn = SIGN_IN.find((name) => members[name] !== undefined);
  if (signIn !== undefined) {
    return unknown(`its client signs in for it (${signIn}), and only the client has the token`);
  }
  const startable = ['args', 'env'].find((name) => members[name] !== undefined);
  if (startable !== undefined) return unknown(`it has ${startable} beside a url, which only a command has`);
  if (!/^(https?:\/\/|\$\{)/i.test(address)) return unknown('its url is no http or https address');
  if (!isTexts(headers)) return unknown('its headers are no object of texts');
  return { kind: 'http', url: address, headers: stringsOf(headers) };
}

function isTexts(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.values(value).every((each) => ['string', 'number', 'boolean'].includes(typeof each));
}

function isTextList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}

function optionalTexts(members: { readonly [name: string]: unknown }): string | undefined {
  return Object.entries(members).find(([, value]) => value !== undefined && typeof value !== 'string')?.[0];
}

/** Numbers and truth values are taken as clients take them; what is null is left out. */
function stringsOf(value: unknown): { readonly [name: string]: string } {
  if (typeof value !== 'object' || value === null) return {};
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, each]) =>
      ['string', 'number', 'boolean'].includes(typeof each) ? [[name, String(each)]] : [],
    ),
  );
}

function positionOf(text: string, offset: number): string {
  const before = text.slice(0, offset);
  const line = before.split('\n').length;
  return `line ${line}, column ${offset - before.lastIndexOf('\n')}`;
}

function errorWords({ error }: ParseError): string {
  return printParseErrorCode(error)
    .replace(/(?<=[a-z])(?=[A-Z])/g, ' ')
    .toLowerCase();
}
