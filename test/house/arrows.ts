// Which room of src may know which: the arrows of ARCHITECTURE.md as data, and the check that reads imports.

import { posix } from 'node:path';
import { type Import, importsOf, nameUsesOf, type Sources } from './source.ts';

/** To a room, or to one file of it. With a reason where it goes beyond the rule of its floor. */
export type Arrow = string | { readonly to: string; readonly as?: 'types'; readonly because: string };

export interface Room {
  readonly arrows: readonly Arrow[];
  /** Modules of Node, without `node:`. */
  readonly node: readonly string[];
  readonly packages: readonly string[];
}

/** The first part of a path under src → what its files may import beside each other. Arrows point down only. */
export const ROOMS: { readonly [room: string]: Room } = {
  core: { arrows: [], node: [], packages: [] },

  contracts: { arrows: ['core'], node: ['fs', 'module'], packages: ['ajv', 'ajv-formats', 'yaml'] },
  access: { arrows: ['core'], node: ['crypto', 'fs', 'path'], packages: [] },
  store: {
    arrows: ['core'],
    node: ['assert', 'crypto', 'fs', 'path', 'timers'],
    packages: [],
  },
  destination: {
    arrows: ['core'],
    node: ['buffer', 'child_process', 'crypto', 'module', 'net', 'perf_hooks', 'stream'],
    packages: ['undici'],
  },

  clients: {
    arrows: [],
    node: ['crypto', 'fs', 'path'],
    packages: ['jsonc-parser'],
  },

  engine: {
    arrows: [
      'core',
      { to: 'access/tokens.ts', as: 'types', because: 'rows of tokens are kept as other rows are' },
      'store/port.ts',
      'destination/port.ts',
    ],
    node: ['crypto', 'perf_hooks'],
    packages: [],
  },
  testing: {
    arrows: ['core', 'store/port.ts', 'destination/port.ts'],
    node: ['assert', 'crypto'],
    packages: [],
  },

  gateway: {
    arrows: [
      'core',
      'access',
      { to: 'store/port.ts', because: 'a store that cannot be read now is told from a fault of ours' },
      'engine',
      'contracts',
      'destination/port.ts',
      { to: 'destination/mcp/frame.ts', because: 'client and server speak the same wire, read in one place' },
      { to: 'destination/mcp/line-framing.ts', because: 'the same wire' },
      { to: 'destination/mcp/request-key.ts', because: 'the same wire' },
      { to: 'destination/mcp/asking.ts', because: 'the same wire: what a server asks back' },
      {
        to: 'destination/mcp/json-edit.ts',
        because: 'the same wire: what one generation has and the other not',
      },
      {
        to: 'destination/mcp/mcp-headers.ts',
        because: 'the same wire: headers are written there and checked here',
      },
      {
        to: 'destination/mcp/upstream.ts',
        as: 'types',
        because: 'what is not a write passes to the server itself; compose hands the running one in',
      },
    ],
    node: ['crypto', 'http', 'net', 'perf_hooks', 'stream'],
    packages: [],
  },

  resident: {
    arrows: [],
    node: ['child_process', 'crypto', 'fs', 'net', 'os', 'path', 'stream', 'timers'],
    packages: [],
  },

  'compose.ts': {
    arrows: ['core', 'access', 'contracts', 'store', 'destination', 'engine', 'gateway'],
    node: ['crypto', 'fs', 'path', 'stream'],
    packages: [],
  },
  'index.ts': {
    arrows: [
      'compose.ts',
      'core',
      'engine',
      'store/port.ts',
      'destination/port.ts',
      { to: 'destination/function-destination.ts', because: 'a plain function as a destination is public' },
    ],
    node: [],
    packages: [],
  },
  cli: {
    arrows: [
      'access',
      'core',
      'contracts',
      'clients',
      'engine',
      'gateway',
      'resident',
      'compose.ts',
      'store/port.ts',
    ],
    node: ['crypto', 'fs', 'net', 'os', 'path', 'readline', 'stream', 'timers', 'tty', 'url', 'util'],
    packages: ['commander'],
  },
};

/** What one file may have that its room may not. */
export const FILES: {
  readonly [file: string]: Partial<Room> & { readonly because: string };
} = {
  'core/digest.ts': { node: ['crypto'], because: 'the one file of the core with a hash function' },
  'engine/presence.ts': {
    node: ['fs', 'os'],
    because: 'which machine and process space this is, is read from the operating system',
  },
  'store/sqlite/driver.ts': {
    packages: ['@photostructure/sqlite'],
    because: 'the engine where Node carries none that is recent enough',
  },
  'destination/http/secrets.ts': {
    node: ['fs'],
    because: 'a secret by reference may lie in a file; it is read when it is needed, and kept nowhere',
  },
  'destination/http/reply.ts': {
    node: ['util', 'zlib'],
    because: 'what is packed is unpacked within a cap, whatever was asked for',
  },
  'cli/wire-client.ts': {
    node: ['child_process'],
    because: 'the stories of try and demo are told with processes that they start themselves',
  },
  'gateway/schema-checks.ts': {
    packages: ['ajv'],
    node: ['vm'],
    because: 'arguments are checked against the tools’ own schemas, for a limited time',
  },
};

/** Who touches `process`, and which members of it; `itself` where it is handed on. */
export const PROCESS: {
  readonly [place: string]: { readonly members: readonly string[] | 'any'; readonly because: string };
} = {
  cli: {
    members: 'any',
    because: 'arguments, environment, exit code, signals and the standard streams are its own',
  },
  'resident/place.ts': { members: ['platform'], because: 'where sockets are files, and where they are not' },
  'compose.ts': { members: ['pid'], because: 'the name of a file that only this process writes' },
  'engine/presence.ts': {
    members: ['kill', 'pid', 'platform'],
    because: 'signal 0 asks whether the process that holds a claim still exists (decision 0006)',
  },
  'store/sqlite/driver.ts': {
    members: ['emitWarning', 'getBuiltinModule', 'itself', 'versions'],
    because: 'asks Node for its own SQLite, without the line that it prints about it',
  },
  'store/sqlite/open-database.ts': { members: ['platform'], because: 'how a file becomes durable differs' },
  'destination/mcp/stdio-child.ts': {
    members: ['nextTick'],
    because: 'a child that cannot start is told after the constructor has returned',
  },
};

export interface HouseRules {
  readonly rooms: typeof ROOMS;
  readonly files: typeof FILES;
  readonly process: typeof PROCESS;
}

/** @returns one sentence for each import, circle, room or use of `process` that the table does not permit */
export function findBrokenArrows(sources: Sources, rules: HouseRules): readonly string[] {
  const used = new Set<object>();
  const problems: string[] = [];
  const graph = new Map<string, string[]>();
  for (const [file, text] of sources) {
    const imports = importsOf(file, text);
    graph.set(
      file,
      imports.filter(isRelative).map((each) => resolve(file, each)),
    );
    if (rules.rooms[roomOf(file)] === undefined) {
      problems.push(`${file}: the room "${roomOf(file)}" has no entry in the table of arrows.`);
      continue;
    }
    for (const each of imports) {
      if (!isPermitted(file, each, rules, used)) {
        const types = each.isTypeOnly ? ' (types)' : '';
        problems.push(`${file}:${each.line} imports ${each.specifier}${types}: no arrow leads there.`);
      }
    }
    problems.push(...findProcessUse(file, text, rules, used));
  }
  problems.push(...findCircles(graph), ...findUnused(rules, used));
  return problems;
}

function isPermitted(file: string, found: Import, { rooms, files }: HouseRules, used: Set<object>): boolean {
  const room = rooms[roomOf(file)];
  const own = files[file];
  if (room === undefined) return false;
  if (isRelative(found)) {
    const target = resolve(file, found);
    if (roomOf(target) === roomOf(file)) return true;
    return [...room.arrows, ...(own?.arrows ?? [])].some((arrow) => {
      const leads = leadsTo(arrow, target, found.isTypeOnly);
      if (leads && typeof arrow === 'object') used.add(arrow);
      return leads;
    });
  }
  const kind = found.specifier.startsWith('node:') ? 'node' : 'packages';
  const name = kind === 'node' ? found.specifier.slice(5).split('/')[0] : packageName(found.specifier);
  if (name === undefined) return false;
  if (room[kind].includes(name)) return true;
  if (own?.[kind]?.includes(name) !== true) return false;
  used.add(own);
  return true;
}

function leadsTo(arrow: Arrow, target: string, isTypeOnly: boolean): boolean {
  const { to, as } = typeof arrow === 'string' ? { to: arrow, as: undefined } : arrow;
  return (target === to || target.startsWith(`${to}/`)) && (as === undefined || isTypeOnly);
}

function findProcessUse(file: string, text: string, rules: HouseRules, used: Set<object>): string[] {
  const entry = rules.process[file] ?? rules.process[roomOf(file)];
  const problems: string[] = [];
  for (const { name, member = 'itself', line } of nameUsesOf(file, text)) {
    if (name !== 'process' && !(name === 'globalThis' && member === 'process')) continue;
    if (entry?.members === 'any' || entry?.members.includes(member) === true) used.add(entry);
    else problems.push(`${file}:${line} touches process (${member}): only the commands do.`);
  }
  return problems;
}

/** An exception that nobody needs any more is taken back, or it would wait for somebody to misuse it. */
function findUnused({ rooms, files, process }: HouseRules, used: ReadonlySet<object>): string[] {
  const exceptions: (readonly [string, object])[] = [...Object.entries(files), ...Object.entries(process)];
  for (const [room, { arrows }] of Object.entries(rooms)) {
    for (const arrow of arrows) {
      if (typeof arrow === 'object') exceptions.push([`${room} → ${arrow.to}`, arrow]);
    }
  }
  return exceptions
    .filter(([, exception]) => !used.has(exception))
    .map(([place]) => `${place}: an exception in the table of arrows that nothing uses.`);
}

/** @param graph file → the files that it imports. @returns one sentence for each group of files that form circles */
export function findCircles(graph: ReadonlyMap<string, readonly string[]>): readonly string[] {
  // Tarjan's strongly connected components: each has more than one file, or imports itself, only if it is a circle.
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const problems: string[] = [];
  const enter = (file: string): void => {
    const at = index.size;
    index.set(file, at);
    low.set(file, at);
    stack.push(file);
    for (const next of graph.get(file) ?? []) {
      if (!index.has(next)) enter(next);
      if (stack.includes(next)) low.set(file, Math.min(low.get(file) ?? at, low.get(next) ?? at));
    }
    if (low.get(file) !== at) return;
    const group = stack.splice(stack.indexOf(file));
    if (group.length > 1 || graph.get(file)?.includes(file) === true) {
      problems.push(`${group.toSorted().join(', ')}: these files import each other in a circle.`);
    }
  };
  for (const file of graph.keys()) if (!index.has(file)) enter(file);
  return problems;
}

function roomOf(file: string): string {
  return file.split('/')[0] ?? file;
}

function isRelative({ specifier }: Import): boolean {
  return specifier.startsWith('.');
}

function resolve(file: string, { specifier }: Import): string {
  return posix.join(posix.dirname(file), specifier);
}

function packageName(specifier: string): string | undefined {
  return /^(@[^/]+\/)?[^/]+/.exec(specifier)?.[0];
}
