// From configuration to running parts: the one file that knows every adapter.

import { randomBytes } from 'node:crypto';
import { access, link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import type { Reached } from './core/stopping-points.ts';
import { openStdioUpstream } from './destination/mcp/stdio-upstream.ts';
import type { Destination } from './destination/port.ts';
import type { EngineContext, FactsSource, LedgerSettings } from './engine/context.ts';
import { type Environment, systemEnvironment } from './engine/environment.ts';
import { Ledger } from './engine/ledger.ts';
import { DEFAULT_SETTINGS } from './engine/settings.ts';
import { Waiters } from './engine/waiters.ts';
import { StdioGateway } from './gateway/stdio-gateway.ts';
import { type GatewayRules, ServerFacts } from './gateway/tool-facts.ts';
import { GuardedServer } from './gateway/upstream.ts';
import { type Store, StoreFault } from './store/port.ts';
import { ReopeningStore } from './store/reopening-store.ts';
import { type FileIdentity, fileIdentity, movedStore } from './store/sqlite/place.ts';
import { openSqliteStore } from './store/sqlite/sqlite-store.ts';

export interface LedgerParts {
  /** The data directory, or `:memory:` for a ledger that ends with its process (tests). */
  readonly data: string;
  readonly destinations?: readonly Destination[];
  readonly factsFor?: FactsSource;
  /** Brings what `factsFor` says up to date; called before work that has waited is sent. */
  readonly refreshFacts?: () => Promise<void>;
  readonly settings?: Partial<LedgerSettings>;
  readonly tenant?: string;
  readonly environment?: Environment;
  /** Drills only: called at each stopping point. */
  readonly reached?: Reached;
  readonly report?: (message: string) => void;
  /** A store that is already open, in place of the embedded one in `data`. */
  readonly store?: Store;
  /** Go on although the store cannot be opened now: writes are answered "not recorded, not sent". */
  readonly toleratesClosedStore?: boolean;
}

export const LEDGER_FILE = 'ledger.sqlite';
const KEY_FILE = 'intent.key';
const KEY_BYTES = 32;
const LOCAL_TENANT = 'local';

/**
 * Opens the ledger in a data directory and begins to carry on with its open work.
 * @throws {StoreFault} when the store or its key cannot be opened, unless `toleratesClosedStore`
 */
export async function composeLedger(parts: LedgerParts): Promise<Ledger> {
  const environment = parts.environment ?? systemEnvironment();
  const key = new IntentKey(parts.data);
  const store = parts.store ?? (await embeddedStore(parts, key));
  if (parts.store !== undefined) await key.load();
  const context: EngineContext = {
    store,
    tenant: parts.tenant ?? LOCAL_TENANT,
    whenReady: () => (key.isLoaded ? undefined : readied(store, key)),
    get secret() {
      return key.bytes;
    },
    environment,
    destinations: new Map((parts.destinations ?? []).map((destination) => [destination.name, destination])),
    factsFor: parts.factsFor ?? (() => undefined),
    refreshFacts: parts.refreshFacts ?? (async () => {}),
    settings: { ...DEFAULT_SETTINGS, ...parts.settings },
    reached: parts.reached ?? (() => {}),
    worker: Ledger.newWorker({ environment }),
    waiters: new Waiters(),
    report: parts.report ?? (() => {}),
  };
  const ledger = new Ledger(context);
  // A process without destinations decides and reads; there is no work that it could go on with.
  if (context.destinations.size > 0) await ledger.start();
  return ledger;
}

/** A reading opens the embedded store, and that reads the key first. */
async function readied(store: Store, key: IntentKey): Promise<void> {
  await store.foreignCommits();
  await key.load();
}

async function embeddedStore(parts: LedgerParts, key: IntentKey): Promise<Store> {
  const file = parts.data === ':memory:' ? ':memory:' : join(parts.data, LEDGER_FILE);
  let first: FileIdentity | undefined;
  const store = new ReopeningStore(async () => {
    // Without its key a ledger cannot tell equal intents: it must not record anything then.
    await key.load();
    // What is opened again after a fault must be the ledger that this process began with: in another, or in a
    // new and empty one, writes that were made would be new.
    if (first !== undefined && fileIdentity(file) !== first) throw movedStore(file);
    const opened = await openSqliteStore({ file });
    first ??= file === ':memory:' ? undefined : fileIdentity(file);
    return opened;
  });
  try {
    await store.ensureOpen();
  } catch (cause) {
    if (parts.toleratesClosedStore !== true) throw cause;
    parts.report?.(cause instanceof Error ? cause.message : String(cause));
  }
  return store;
}

/**
 * The key of intent hashes: beside the store, not in it. The first process makes it; a link, which fails when
 * the name exists, decides between two that start at once.
 */
class IntentKey {
  readonly #data: string;
  #bytes: Uint8Array | undefined;

  constructor(data: string) {
    this.#data = data;
  }

  get isLoaded(): boolean {
    return this.#bytes !== undefined;
  }

  /** @throws {StoreFault} while the key has not been loaded */
  get bytes(): Uint8Array {
    if (this.#bytes === undefined) {
      throw new StoreFault('ERR_STORE_UNAVAILABLE', `The key of ${this.#data} has not been read.`, {
        fate: 'not_stored',
      });
    }
    return this.#bytes;
  }

  /** @throws {StoreFault} when it can be neither read nor made */
  async load(): Promise<void> {
    if (this.#bytes !== undefined) return;
    if (this.#data === ':memory:') {
      this.#bytes = randomBytes(KEY_BYTES);
      return;
    }
    const file = join(this.#data, KEY_FILE);
    try {
      this.#bytes = await readOrMakeKey(this.#data, file);
    } catch (cause) {
      throw cause instanceof StoreFault ? cause : unusableKey(this.#data, cause);
    }
  }
}

function unusableKey(directory: string, cause: unknown): StoreFault {
  return new StoreFault(
    'ERR_STORE_UNAVAILABLE',
    `The ledger in ${directory} cannot be used: its key file ${KEY_FILE} can be neither read nor made (${reasonOf(cause)}). Give a directory that this account may write to, with --data.`,
    { fate: 'not_stored', cause },
  );
}

function reasonOf(cause: unknown): string {
  const { code, message } = cause as NodeJS.ErrnoException;
  switch (code) {
    case 'EACCES':
    case 'EPERM':
      return 'this account has no right to it';
    case 'EROFS':
      return 'the file system is read-only';
    case 'ENOTDIR':
    case 'EEXIST':
      return 'a part of the path is a file, not a directory';
    case 'ENOSPC':
    case 'EDQUOT':
      return 'the disk is full';
    default:
      return message;
  }
}

async function readOrMakeKey(directory: string, file: string): Promise<Uint8Array> {
  const existing = await readKey(file);
  if (existing !== undefined) return existing;
  // The key is made before the ledger. A ledger without one has lost it, and under a new one every earlier write
  // would be new: it would be sent again.
  if (await isThere(join(directory, LEDGER_FILE))) {
    const madeMeanwhile = await readKey(file);
    if (madeMeanwhile !== undefined) return madeMeanwhile;
    throw new StoreFault(
      'ERR_STORE_UNAVAILABLE',
      `The ledger in ${directory} cannot be used: its key file ${KEY_FILE} is missing, and with a new one nobody could tell which writes were made before. Put it back, from a copy of the directory.`,
      { fate: 'not_stored' },
    );
  }
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const fresh = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`;
  await writeFile(fresh, randomBytes(KEY_BYTES), { mode: 0o600, flag: 'wx', flush: true });
  try {
    await link(fresh, file);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause;
  } finally {
    await rm(fresh, { force: true });
  }
  const made = await readKey(file);
  if (made === undefined) throw new Error(`${file} is not there after it was made`);
  return made;
}

async function isThere(file: string): Promise<boolean> {
  try {
    await access(file);
    return true;
  } catch {
    return false;
  }
}

async function readKey(file: string): Promise<Uint8Array | undefined> {
  try {
    const bytes = await readFile(file);
    if (bytes.length !== KEY_BYTES)
      throw new Error(`${file} holds ${bytes.length} bytes in place of ${KEY_BYTES}`);
    return bytes;
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw cause;
  }
}

// ── The gateway in front of one server over stdio ──────────────────────────────────────────────────────────

export interface StdioGatewayParts {
  readonly data: string;
  readonly destination: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly rules: GatewayRules;
  readonly settings: Partial<LedgerSettings>;
  readonly requester: string;
  readonly run: string | undefined;
  readonly where: string;
  readonly input: Readable;
  readonly output: Writable;
  readonly report: (message: string) => void;
  readonly reached: Reached;
  readonly version: string;
  readonly environment?: Environment;
}

export interface RunningGateway {
  /** Whether the store could be opened. */
  readonly isRecording: boolean;
  /** Resolves when the client has closed its end and what it had called is answered. */
  serve(): Promise<void>;
  /** Nothing leaves any more; what is out is waited for and recorded. */
  close(): Promise<void>;
  /** The same without the wait: what is out is recorded as unknown. */
  abort(): Promise<void>;
}

/**
 * Clients give us two seconds after they have closed our input and two after SIGTERM before they kill us. In each
 * of them the server must have ended, by SIGKILL if need be, or it would be left behind.
 */
const KILL_GRACE_MS = 900;

export async function composeStdioGateway(parts: StdioGatewayParts): Promise<RunningGateway> {
  const upstream = openStdioUpstream({
    name: parts.destination,
    command: parts.command,
    args: parts.args,
    clientVersion: parts.version,
    killGraceMs: KILL_GRACE_MS,
  });
  const server = new GuardedServer(upstream);
  const facts = new ServerFacts(parts.destination, parts.rules, server.tools, parts.report);
  server.setFacts(facts);
  const ledger: Ledger = await composeLedger({
    data: parts.data,
    destinations: [server],
    factsFor: (destination, tool, args) => facts.for(destination, tool, args),
    refreshFacts: async () => facts.confirm(await ledger.rules()),
    settings: parts.settings,
    reached: parts.reached,
    report: parts.report,
    toleratesClosedStore: true,
    ...(parts.environment === undefined ? {} : { environment: parts.environment }),
  });
  server.onListed = async () => {
    const pins = await ledger.tools.seeIfPossible(parts.destination, server.tools.all);
    if (pins !== undefined) facts.pin(pins);
    return pins !== undefined;
  };
  const { requester, run, where, input, output, report, reached } = parts;
  const gateway = new StdioGateway({
    ledger,
    upstream,
    server,
    facts,
    requester,
    run,
    where,
    input,
    output,
    report,
    reached,
  });
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => (closing ??= ledger.close());
  return {
    isRecording: await canRead(ledger),
    serve: () => gateway.serve(),
    close,
    async abort() {
      await server.close();
      await close();
    },
  };
}

async function canRead(ledger: Ledger): Promise<boolean> {
  try {
    await ledger.readings.recent(1);
    return true;
  } catch (cause) {
    if (!(cause instanceof StoreFault)) throw cause;
    return false;
  }
}
