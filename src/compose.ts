// From configuration to running parts: the one file that knows every adapter.

import { hkdfSync, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { access, link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { mayPrincipalWrite } from './access/tokens.ts';
import { type HttpDestinationConfig, httpFacts, timeoutsOf } from './contracts/http-destination-config.ts';
import { loadHttpDestination } from './contracts/load.ts';
import { formatProblem } from './contracts/problem.ts';
import { durationMs } from './core/contract.ts';
import type { Reached } from './core/stopping-points.ts';
import { openHttpDestination } from './destination/http/http-destination.ts';
import { Secrets } from './destination/http/secrets.ts';
import { offersSignIn, speaksOlderTransport } from './destination/mcp/http-signs.ts';
import { type HttpUpstreamOptions, openHttpUpstream } from './destination/mcp/http-upstream.ts';
import { type KnownGeneration, SessionView } from './destination/mcp/session-view.ts';
import type { StdioCommand } from './destination/mcp/stdio-child.ts';
import { openStdioUpstream } from './destination/mcp/stdio-upstream.ts';
import type { McpUpstream, OwnHandshake } from './destination/mcp/upstream.ts';
import type { Destination } from './destination/port.ts';
import { postSigned } from './destination/post.ts';
import type { EngineContext, FactsSource, LedgerSettings } from './engine/context.ts';
import { type Environment, systemEnvironment } from './engine/environment.ts';
import { Ledger, type OwnerRule } from './engine/ledger.ts';
import { DEFAULT_SETTINGS } from './engine/settings.ts';
import { type AnswersOut, noAnswersOut, Waiters } from './engine/waiters.ts';
import type { WebhookEndpoint } from './engine/webhooks.ts';
import { FollowedPolicy } from './gateway/followed-policy.ts';
import { authenticateBearer } from './gateway/http/bearer.ts';
import { type Authenticate, type DoorEndpoint, HttpDoor } from './gateway/http/http-door.ts';
import { type EndpointLimits, McpEndpoint } from './gateway/http/mcp-endpoint.ts';
import { inspectServer, type ServerInspection } from './gateway/inspect-server.ts';
import { SchemaChecks } from './gateway/schema-checks.ts';
import { StdioGateway } from './gateway/stdio-gateway.ts';
import { type GatewayRules, ServerFacts } from './gateway/tool-facts.ts';
import { GuardedServer } from './gateway/upstream.ts';
import { BorrowedStore } from './store/borrowed-store.ts';
import { type Durability, type Store, StoreFault } from './store/port.ts';
import { ReopeningStore } from './store/reopening-store.ts';
import { CONTENT_KEY_BYTES, SealedContent } from './store/sealed-content.ts';
import { type FileIdentity, fileIdentity, movedStore } from './store/sqlite/place.ts';
import { openSqliteStore } from './store/sqlite/sqlite-store.ts';

export { type ProcessLock, takeProcessLock } from './store/sqlite/process-lock.ts';

export interface LedgerParts {
  /** The data directory, or `:memory:` for a ledger that ends with its process (tests). */
  readonly data: string;
  readonly destinations?: readonly Destination[];
  readonly factsFor?: FactsSource;
  /** Destinations over HTTP with their facts, beside the others. */
  readonly http?: readonly OpenedHttpDestination[];
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
  /** The ledger of a process that has several of these, in place of one that is opened here; it stays open. */
  readonly shared?: SharedLedger;
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
  const { store, key, waiters, answersOut } = await openedLedger(parts);
  const { http = [] } = parts;
  const destinations = [...(parts.destinations ?? []), ...http.map(({ destination }) => destination)];
  const context: EngineContext = {
    store,
    tenant: parts.tenant ?? LOCAL_TENANT,
    whenReady: () => (key.isLoaded ? undefined : readied(store, key)),
    get secret() {
      return key.bytes;
    },
    environment,
    destinations: new Map(destinations.map((destination) => [destination.name, destination])),
    factsFor: (destination, tool, args) =>
      http.find((one) => one.destination.name === destination)?.factsFor(destination, tool, args) ??
      parts.factsFor?.(destination, tool, args),
    refreshFacts: parts.refreshFacts ?? (async () => {}),
    settings: { ...DEFAULT_SETTINGS, ...parts.settings },
    reached: parts.reached ?? (() => {}),
    worker: Ledger.newWorker({ environment }),
    waiters,
    answersOut,
    report: parts.report ?? (() => {}),
  };
  const ledger = new Ledger(context);
  // A process without destinations decides and reads; there is no work that it could go on with.
  if (context.destinations.size > 0) await ledger.start();
  return ledger;
}

// ── A destination over HTTP ────────────────────────────────────────────────────────────────────────────────

export interface OpenedHttpDestination {
  readonly destination: Destination;
  readonly factsFor: FactsSource;
  /** What is told although nothing is refused, in sentences: a review that is overdue. */
  readonly notes: readonly string[];
}

/** A file of ours cannot be used: the message has a line for each problem, `file:line:column: sentence`. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
  readonly code = 'ERR_CONFIGURATION';
}

/**
 * A destination over HTTP from the file of its configuration, with the contract that it names.
 * @param options.environment where secrets by `env` are looked for, such as `process.env`; none is there when absent
 * @throws {ConfigurationError} when a file cannot be read or has a problem
 */
export async function composeHttpDestination(
  file: string,
  options: { readonly environment?: { readonly [name: string]: string | undefined } } = {},
): Promise<OpenedHttpDestination> {
  const folder = dirname(file);
  const readText = (name: string) => textOf(resolve(folder, name));
  const text = textOf(file);
  if ('reason' in text) throw new ConfigurationError(`${file}:1:1: The file cannot be read: ${text.reason}.`);
  const today = new Date().toISOString().slice(0, 10);
  const loaded = loadHttpDestination(text.text, file, { readText, today });
  if (!loaded.ok) throw new ConfigurationError(loaded.problems.map(formatProblem).join('\n'));
  const { config, contract, notes } = loaded;
  const ca = config.tls?.ca === undefined ? undefined : readText(config.tls.ca);
  if (ca !== undefined && 'reason' in ca) {
    throw new ConfigurationError(`${file}:1:1: The file ${config.tls?.ca} cannot be read: ${ca.reason}.`);
  }
  const secrets = new Secrets(referencesFrom(config, folder), options.environment ?? {});
  const keepAliveMs = durationMs(config.pool?.keep_alive);
  const { notices } = config;
  return {
    destination: openHttpDestination({
      name: config.destination,
      url: config.url,
      operations: new Map(contract.operations.map((operation) => [operation.id, operation])),
      secrets,
      timeouts: timeoutsOf(config),
      ...(config.headers === undefined ? {} : { headers: config.headers }),
      ...(config.pool?.connections === undefined ? {} : { connections: config.pool.connections }),
      ...(keepAliveMs === undefined ? {} : { keepAliveMs }),
      ...(config.reply_max_bytes === undefined ? {} : { replyMaxBytes: config.reply_max_bytes }),
      ...(ca === undefined ? {} : { ca: ca.text }),
      ...(notices === undefined
        ? {}
        : { notices: { secret: notices.secret, toleranceMs: durationMs(notices.tolerance) ?? 300_000 } }),
    }),
    factsFor: httpFacts(config, contract),
    notes: notes.map(formatProblem),
  };
}

function referencesFrom({ secrets = {} }: HttpDestinationConfig, folder: string) {
  return Object.fromEntries(
    Object.entries(secrets).map(([name, reference]) => [
      name,
      'file' in reference ? { file: resolve(folder, reference.file) } : reference,
    ]),
  );
}

function textOf(file: string): { readonly text: string } | { readonly reason: string } {
  try {
    return { text: readFileSync(file, 'utf8') };
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    return { reason: code === 'ENOENT' ? 'it is not there' : message };
  }
}

/** One open store with its key, and what those who work on it in this process know together. */
export interface SharedLedger {
  readonly store: Store;
  readonly key: IntentKey;
  readonly waiters: Waiters;
  readonly answersOut: AnswersOut;
}

async function openedLedger(parts: LedgerParts): Promise<SharedLedger> {
  if (parts.shared !== undefined) return { ...parts.shared, store: new BorrowedStore(parts.shared.store) };
  const key = new IntentKey(parts.data);
  const store = parts.store ?? (await embeddedStore(parts, key));
  if (parts.store !== undefined) await key.load();
  return {
    store: sealed(store, key, parts.report),
    key,
    waiters: new Waiters(),
    answersOut: noAnswersOut(),
  };
}

/** Content is encrypted under a key that lies beside the store, for one purpose of its own. */
function sealed(store: Store, key: IntentKey, report: ((message: string) => void) | undefined): Store {
  const contentKey = (): Uint8Array =>
    new Uint8Array(
      hkdfSync('sha256', key.bytes, new Uint8Array(), 'counterfoil content at rest', CONTENT_KEY_BYTES),
    );
  return new SealedContent(store, contentKey, ({ digest, owner }) =>
    report?.(
      `Content of ${owner.slice(owner.indexOf(':') + 1)} cannot be read: it was altered in the store, or was written under another ${KEY_FILE} (${digest.slice(0, 19)}…).`,
    ),
  );
}

/**
 * Opens the ledger in a data directory for a process that stands in front of several servers. Where it cannot be
 * opened now it is opened later, by the first who needs it.
 */
export async function openSharedLedger(
  parts: Pick<LedgerParts, 'data' | 'report'>,
): Promise<SharedLedger & { close(): Promise<void> }> {
  const key = new IntentKey(parts.data);
  const embedded = await embeddedStore({ ...parts, toleratesClosedStore: true }, key);
  const store = sealed(embedded, key, parts.report);
  return { store, key, waiters: new Waiters(), answersOut: noAnswersOut(), close: () => embedded.close() };
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
export class IntentKey {
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

export type StdioGatewayParts = Reach & GatewayParts;

interface GatewayParts {
  readonly data: string;
  readonly destination: string;
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
  const upstream = new SessionView({
    upstream: openUpstreamOf(parts.destination, reachOf(parts), parts.version),
    known: {},
  });
  const guarded = guardServer(parts, new GuardedServer({ own: upstream, isGreetedByClient: true }));
  const ledger = await composeGuardingLedger(parts, [guarded]);
  const { requester, run, where, input, output, report, reached } = parts;
  const gateway = new StdioGateway({
    ...guarded,
    ledger,
    upstream,
    openShared: (clientCapabilities) =>
      openUpstreamOf(parts.destination, reachOf(parts), parts.version, {
        prefers: 'modern',
        clientCapabilities,
      }),
    requester,
    run,
    where,
    input,
    output,
    report,
    reached,
    schemas: new SchemaChecks(report),
  });
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => {
    guarded.server.stopAsking();
    return (closing ??= ledger.close());
  };
  return {
    isRecording: await canRead(ledger),
    serve: () => gateway.serve(),
    close,
    async abort() {
      await guarded.server.close();
      await close();
    },
  };
}

interface Guarded {
  readonly server: GuardedServer;
  readonly facts: ServerFacts;
  readonly report: (message: string) => void;
  followPolicy: () => Promise<void> | undefined;
}

function guardServer(
  parts: {
    readonly destination: string;
    readonly rules: GatewayRules;
    readonly report: (message: string) => void;
  },
  server: GuardedServer,
): Guarded {
  const facts = new ServerFacts(parts.destination, parts.rules, server.tools, parts.report);
  server.setFacts(facts);
  return { server, facts, report: parts.report, followPolicy: () => undefined };
}

/** A ledger that sends to guarded servers, and judges by what is known of their tools. */
async function composeGuardingLedger(
  parts: Pick<LedgerParts, 'data' | 'settings' | 'reached' | 'report' | 'environment' | 'shared'>,
  guarded: readonly Guarded[],
): Promise<Ledger> {
  const byName = new Map(guarded.map(({ server, facts }) => [server.name, facts]));
  const ledger: Ledger = await composeLedger({
    ...parts,
    destinations: guarded.map(({ server }) => server),
    factsFor: (destination, tool, args) => byName.get(destination)?.for(destination, tool, args),
    refreshFacts: async () => {
      const rules = await ledger.rules();
      for (const { facts, followPolicy } of guarded) {
        await followPolicy();
        facts.confirm(rules);
      }
    },
    toleratesClosedStore: true,
  });
  for (const one of guarded) {
    const { server, facts, report } = one;
    const followed = new FollowedPolicy({
      policies: ledger.policies,
      facts,
      destination: server.name,
      report,
    });
    one.followPolicy = () => followed.look();
    server.onListed = async () => {
      const tools = [...(server.tools.all?.values() ?? [])];
      const firstSeen = await ledger.tools.seeIfPossible(server.name, tools);
      if (firstSeen !== undefined) facts.pin(firstSeen);
      return firstSeen !== undefined;
    };
  }
  return ledger;
}

// ── One server behind the resident process, for several clients over stdio ─────────────────────────────────────

export type GatewayHostParts = Reach &
  Omit<GatewayParts, 'input' | 'output' | 'run' | 'requester'> & { readonly shared: SharedLedger };

export interface HostedClient {
  readonly requester: string;
  readonly run: string | undefined;
  readonly input: Readable;
  readonly output: Writable;
  /** Where the standard error of its server process goes. */
  readonly stderr: (chunk: Buffer) => void;
}

export interface GatewayHost {
  readonly isRecording: boolean;
  /** Serves one client until it has closed its end and what it had called is answered. */
  serve(client: HostedClient): Promise<void>;
  /** Whether work of this server is open: on its way, ready, or waiting for a person. */
  isOpen(): Promise<boolean>;
  /** Nothing leaves any more; what is out is waited for and recorded. */
  close(): Promise<void>;
  /** The same without the wait: what is out is recorded as unknown. */
  abort(): Promise<void>;
}

export async function composeGatewayHost(parts: GatewayHostParts): Promise<GatewayHost> {
  const { destination, report, reached, where } = parts;
  const reach = reachOf(parts);
  // For work that has waited until its client was gone: a connection of the host's own, opened when it is needed.
  const own = openUpstreamOf(destination, reach, parts.version);
  const known: KnownGeneration = {};
  const guarded = guardServer(parts, new GuardedServer({ own, isGreetedByClient: true }));
  const ledger = await composeGuardingLedger(parts, [guarded]);
  const schemas = new SchemaChecks(report);
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => (closing ??= ledger.close());
  return {
    isRecording: await canRead(ledger),
    async serve({ requester, run, input, output, stderr }) {
      const ofClient = 'url' in reach ? reach : { ...reach, stderr };
      const upstream = new SessionView({
        upstream: openUpstreamOf(destination, ofClient, parts.version),
        known,
      });
      const openShared = (clientCapabilities: string): McpUpstream =>
        openUpstreamOf(destination, ofClient, parts.version, { prefers: 'modern', clientCapabilities });
      const common = { ...guarded, ledger, upstream, openShared, where, report, reached, schemas };
      await new StdioGateway({ ...common, requester, run, input, output }).serve();
    },
    async isOpen() {
      const open = await ledger.readings.open({ queues: [destination], stages: OPEN_STAGES, limit: 1 });
      return open.length > 0;
    },
    close,
    async abort() {
      await guarded.server.close();
      await close();
    },
  };
}

/** A gateway can go on with it by itself, or could as soon as a person has decided. */
const OPEN_STAGES = ['awaiting_approval', 'ready', 'sending', 'checking'] as const;

// ── The gateway in front of several servers over HTTP ───────────────────────────────────────────────────────

/** How a server is reached: a program that is started, or an address. */
export type Reach =
  | StdioCommand
  | { readonly url: string; readonly headers?: Readonly<Record<string, string>> };

export interface ServedServerParts {
  /** The path's last part, `/mcp/NAME`. */
  readonly name: string;
  readonly destination: string;
  readonly reach: Reach;
  readonly rules: GatewayRules;
  readonly run: string | undefined;
}

export interface HttpGatewayParts {
  readonly data: string;
  readonly servers: readonly ServedServerParts[];
  /** Named, and not to be served: whoever asks for one is told why. */
  readonly unservable?: readonly { readonly name: string; readonly problem: string }[];
  readonly host: string;
  readonly port: number;
  readonly hostNames: readonly string[];
  /** Who asks without a token, while none was ever made; nobody where absent. */
  readonly localPrincipal?: string | undefined;
  /** Says who asks, in place of the ledger's tokens. */
  readonly authenticate?: Authenticate;
  readonly settings: Partial<LedgerSettings>;
  readonly where: string;
  readonly report: (message: string) => void;
  readonly reached: Reached;
  readonly version: string;
  readonly environment?: Environment;
  readonly limits?: EndpointLimits;
  /** Who is told of causes in the queue. */
  readonly webhooks?: readonly WebhookEndpoint[];
}

export interface RunningHttpGateway {
  /** Whether the store could be opened. */
  readonly isRecording: boolean;
  readonly port: number;
  /** The path of each server, by its name. */
  readonly paths: ReadonlyMap<string, string>;
  /** Nothing leaves any more; what is out is waited for and recorded. */
  close(): Promise<void>;
  /** The same without the wait: what is out is recorded as unknown. */
  abort(): Promise<void>;
}

/** @throws where the address cannot be listened on */
export async function composeHttpGateway(parts: HttpGatewayParts): Promise<RunningHttpGateway> {
  const { report, reached, where } = parts;
  const served = parts.servers.map((one) => {
    const known: KnownGeneration = {};
    const paramHeaders: NonNullable<HttpUpstreamOptions['paramHeaders']> = new Map();
    const open = (own?: OwnHandshake): McpUpstream =>
      openUpstreamOf(one.destination, one.reach, parts.version, { ...own, paramHeaders });
    const openUpstream = (): McpUpstream => new SessionView({ upstream: open(), known });
    const openShared = (clientCapabilities: string): McpUpstream =>
      open({ prefers: 'modern', clientCapabilities });
    const server = new GuardedServer({ own: open(), isGreetedByClient: false });
    return { ...one, ...guardServer({ ...one, report }, server), openUpstream, openShared };
  });
  const ledger = await composeGuardingLedger(parts, served);
  const { webhooks = [] } = parts;
  if (webhooks.length > 0) ledger.tellOfCauses(webhooks, postSigned);
  const endpoints = new Map<string, DoorEndpoint>(
    (parts.unservable ?? []).map(({ name, problem }) => [`/mcp/${name}`, { server: name, problem }]),
  );
  const paths = new Map<string, string>();
  for (const { name, server, facts, followPolicy, openUpstream, openShared, run } of served) {
    const schemas = new SchemaChecks(report);
    const mayWrite = async (requester: string): Promise<boolean> =>
      mayPrincipalWrite(requester, await ledger.tokens.all());
    const common = { ledger, server, facts, followPolicy, run, mayWrite, where, report, reached, schemas };
    const endpoint = new McpEndpoint({ ...common, ...parts.limits, openUpstream, openShared });
    const path = `/mcp/${name}`;
    paths.set(name, path);
    endpoints.set(path, { server: name, endpoint });
    if (served.length === 1) endpoints.set('/mcp', { server: name, endpoint });
  }
  const { hostNames, localPrincipal } = parts;
  const now = parts.environment?.now ?? Date.now;
  const tokens = (): ReturnType<Ledger['tokens']['all']> => ledger.tokens.all();
  const authenticate: Authenticate =
    parts.authenticate ??
    ((request, server) => authenticateBearer({ tokens, localPrincipal, now }, request, server));
  const door = new HttpDoor({ endpoints, authenticate, hostNames, report });
  let port: number;
  try {
    port = await door.listen(parts.host, parts.port);
  } catch (cause) {
    await ledger.close();
    throw cause;
  }
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => {
    for (const { server } of served) server.stopAsking();
    return (closing ??= closeBoth(door, ledger));
  };
  return {
    isRecording: await canRead(ledger),
    port,
    paths,
    close,
    async abort() {
      await Promise.all(served.map(({ server }) => server.close()));
      await close();
    },
  };
}

/** The ledger stops sending while the door still answers what was called. */
async function closeBoth(door: HttpDoor, ledger: Ledger): Promise<void> {
  const doorClosed = door.close();
  await ledger.close();
  await doorClosed;
}

/** What reaches the server, without what stands beside it. */
function reachOf(parts: Reach): Reach {
  if ('url' in parts)
    return { url: parts.url, ...(parts.headers === undefined ? {} : { headers: parts.headers }) };
  const { command, args, env, cwd, stderr } = parts;
  return { command, args, env, cwd, stderr };
}

function openUpstreamOf(
  name: string,
  reach: Reach,
  clientVersion: string,
  { paramHeaders, ...own }: OwnHandshake & Pick<HttpUpstreamOptions, 'paramHeaders'> = {},
): McpUpstream {
  const shared = paramHeaders === undefined ? {} : { paramHeaders };
  return 'url' in reach
    ? openHttpUpstream({ name, ...reach, clientVersion, ...own, ...shared })
    : openStdioUpstream({ name, ...reach, clientVersion, killGraceMs: KILL_GRACE_MS, ...own });
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

// ── One look at a server, before anything stands in front of it ────────────────────────────────────────────

interface LookParts {
  /** The name under which the destination is, or would be, recorded. */
  readonly destination: string;
  readonly ownerRules: readonly OwnerRule[];
  readonly timeoutMs: number;
  readonly version: string;
}

export interface InspectionParts extends LookParts {
  readonly command: string;
  readonly args: readonly string[];
  /** The whole environment of the server. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | undefined;
  /** What the server says on its standard error, as it comes. */
  readonly onStderr: (chunk: Buffer) => void;
}

/** Nothing was asked of it that could be cut off: a server that does not end with its input is told soon. */
const INSPECTION_GRACE_MS = 300;

/** Starts a server, asks what it is and what tools it has, and ends it. Nothing is called and nothing recorded. */
export async function inspectStdioServer(parts: InspectionParts): Promise<ServerInspection> {
  const upstream = openStdioUpstream({
    name: parts.destination,
    command: parts.command,
    args: parts.args,
    env: parts.env,
    cwd: parts.cwd,
    stderr: parts.onStderr,
    startTimeoutMs: parts.timeoutMs,
    clientVersion: parts.version,
    killGraceMs: INSPECTION_GRACE_MS,
  });
  try {
    return await inspectServer(upstream, parts);
  } finally {
    await upstream.close();
  }
}

export interface HttpInspectionParts extends LookParts {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

export type HttpInspection =
  /** `offersSignIn`: it answers whoever asks, and may treat those who have signed in otherwise. */
  | (ServerInspection & { readonly answered: true; readonly offersSignIn: boolean })
  | (ServerInspection & {
      readonly answered: false;
      /** Why no gateway could reach it; absent where that is not known. */
      readonly refusal?: 'sign_in' | 'credential' | 'older_transport';
    });

/** Asks a server at its address what it is and what tools it has. Nothing is called and nothing recorded. */
export async function inspectHttpServer(parts: HttpInspectionParts): Promise<HttpInspection> {
  const { destination: name, url, headers, timeoutMs: startTimeoutMs, version: clientVersion } = parts;
  const upstream = openHttpUpstream({ name, url, headers, startTimeoutMs, clientVersion });
  const isAnonymous = Object.keys(headers).length === 0;
  try {
    const inspection = await inspectServer(upstream, parts);
    if (inspection.answered) {
      return { ...inspection, offersSignIn: isAnonymous && (await offersSignIn(url)) };
    }
    const { status = 0, hasChallenge = false } = upstream.refusal ?? {};
    if (status === 401 && hasChallenge) {
      return { ...inspection, refusal: isAnonymous ? 'sign_in' : 'credential' };
    }
    const mayBeOlder = [400, 404, 405].includes(status);
    return mayBeOlder && (await speaksOlderTransport(url, headers))
      ? { ...inspection, refusal: 'older_transport' }
      : inspection;
  } finally {
    await upstream.close();
  }
}

// ── What the store would be, for whoever looks before anything is recorded ─────────────────────────────────

/**
 * The durability of the ledger in a data directory as it reads back; where there is none yet, of the engine alone.
 * @throws {StoreFault} when the store that is there cannot be opened as it must be
 */
export async function readDurability(data: string): Promise<Durability & { readonly isLedger: boolean }> {
  const file = join(data, LEDGER_FILE);
  const isLedger = await isThere(file);
  const store = await openSqliteStore({ file: isLedger ? file : ':memory:' });
  try {
    return { ...store.durability, isLedger };
  } finally {
    await store.close();
  }
}
