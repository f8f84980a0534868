// One story over HTTP: a ledger in front of a destination by its contract, as an owner writes it down. The destination is
// a process of its own (http-destination.mjs); what it holds is counted in its own log.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { TestContext } from 'vitest';
import { composeHttpDestination, composeLedger, type LedgerParts } from '../../src/compose.ts';
import type { JsonObject } from '../../src/core/canonical.ts';
import type { Operation } from '../../src/core/operation.ts';
import { systemEnvironment } from '../../src/engine/environment.ts';
import type { Ledger } from '../../src/engine/ledger.ts';
import { deadUrl } from '../destination/http-fixture.ts';
import { operationOf } from '../engine/setup.ts';
import { counterfoil, type Ran } from '../gateway/processes.ts';

const SERVER = fileURLToPath(new URL('http-destination.mjs', import.meta.url));

export interface Entry {
  readonly cell: string;
  readonly event: 'record' | 'write' | 'question' | 'fault' | 'planned' | 'deleted';
  readonly key?: string;
  readonly record?: JsonObject & { readonly id: string };
  readonly fault?: string;
}

/** What a cell does from now on: see http-destination.mjs. */
export interface Plan {
  readonly writes?: readonly (
    | 'lose_reply'
    | 'refuse'
    | 'cut_before'
    | 'hang_before'
    | 'keep_old'
    | 'overwritten'
    | 'die'
    | 'answer'
  )[];
  readonly questions?: readonly ('hang' | 'cut' | 'unavailable' | 'answer')[];
  readonly otherQuestions?: 'answer' | 'hang' | 'unavailable';
  readonly keys?: 'honoured' | 'ignored';
  readonly freesIds?: boolean;
  readonly lagMs?: number;
  readonly hidesUntil?: number;
  readonly copy?: true;
  readonly remove?: true;
}

/** A destination that can be ended and started again; it has a port of its own from the beginning. */
export class StoryDestination {
  readonly folder: string;
  readonly #log: string;
  #origin: string;
  #child: ChildProcess | undefined;

  constructor(folder: string, origin: string) {
    this.folder = folder;
    this.#log = join(folder, 'destination.log');
    this.#origin = origin;
  }

  async start(): Promise<void> {
    const { port } = new URL(this.#origin);
    const child = spawn(process.execPath, [SERVER, this.#log, port], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#child = child;
    await once(child.stdout ?? process.stdin, 'data');
  }

  /** As a power cut would. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  url(cell: string): string {
    return `${this.#origin}/c/${cell}`;
  }

  async plan(cell: string, plan: Plan): Promise<void> {
    const body = JSON.stringify(plan);
    const { ok } = await fetch(`${this.#origin}/plan/${cell}`, { method: 'POST', body });
    if (!ok) throw new Error('The plan was not taken.');
  }

  log(cell: string, event: Entry['event']): readonly Entry[] {
    if (!existsSync(this.#log)) return [];
    const lines = readFileSync(this.#log, 'utf8').split('\n').slice(0, -1);
    return lines
      .map((line) => JSON.parse(line) as Entry)
      .filter((entry) => entry.cell === cell && entry.event === event);
  }

  records(cell: string): readonly string[] {
    return this.log(cell, 'record').map(({ record }) => record?.id ?? '');
  }
}

/** @param options.isDown it has its address, and is not started yet */
export async function storyDestination(
  context: Pick<TestContext, 'onTestFinished'>,
  options: { readonly isDown?: boolean } = {},
): Promise<StoryDestination> {
  const folder = mkdtempSync(join(tmpdir(), 'counterfoil-story-'));
  const destination = new StoryDestination(folder, await deadUrl());
  context.onTestFinished(async () => {
    await destination.kill();
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  });
  if (options.isDown !== true) await destination.start();
  return destination;
}

export interface HttpStory {
  readonly ledger: Ledger;
  /** An equal call of the same run is the same write. */
  write(args: JsonObject, destination?: string): Promise<Operation>;
  /** Proposes, and waits for nothing. */
  propose(args: JsonObject, destination?: string): Promise<Operation>;
  until(id: string, isWanted: (operation: Operation) => boolean): Promise<Operation>;
  /** What `counterfoil` says about the ledger of this story. */
  counterfoil(args: readonly string[]): Promise<Ran>;
  moveClock(ms: number): void;
  events(id: string): Promise<readonly string[]>;
}

/** One operation as a contract states it. */
export type StatedOperation = JsonObject & { readonly id: string };

export interface StoryOptions {
  /** Name of each destination → its address and the operation that its contract states. */
  readonly destinations: {
    readonly [name: string]: {
      readonly url: string;
      readonly operation: StatedOperation;
      /** `ordinary` when absent. */
      readonly class?: 'ordinary' | 'irreversible';
    };
  };
  readonly settings?: LedgerParts['settings'];
  readonly folder: string;
}

/** The answer to a write is waited for so long; loopback needs a thousandth of it. */
const SETTINGS = { callerWaitMs: 0, replyTimeoutMs: 2_000, lookUpTimeoutMs: 500 };

/** What has not come about by then does not; a lag of twenty seconds is waited for. */
const PLENTY_MS = 45_000;

async function until(
  ledger: Ledger,
  id: string,
  isWanted: (operation: Operation) => boolean,
): Promise<Operation> {
  const endsAt = Date.now() + PLENTY_MS;
  for (;;) {
    const record = await ledger.readings.record(id);
    if (record !== undefined && isWanted(record.operation)) return record.operation;
    if (Date.now() > endsAt) throw new Error(`still ${JSON.stringify(record?.operation)}`);
    await pause(POLL_MS);
  }
}

const POLL_MS = 10;

export const SETTLED = ({ stage }: Operation): boolean => stage === 'closed' || stage === 'parked';

export async function httpStory(
  context: Pick<TestContext, 'onTestFinished'>,
  { destinations, folder, settings }: StoryOptions,
): Promise<HttpStory> {
  const system = systemEnvironment();
  let offset = 0;
  const files = Object.entries(destinations).map(([name, { class: toolClass, operation, url }]) =>
    writeFiles(join(folder, `files-${name}`), name, { url, operation, class: toolClass ?? 'ordinary' }),
  );
  const data = join(folder, 'data');
  const ledger = await composeLedger({
    data,
    http: await Promise.all(files.map((file) => composeHttpDestination(file))),
    environment: { ...system, now: () => system.now() + offset },
    settings: { ...SETTINGS, ...settings },
  });
  context.onTestFinished(() => ledger.close());
  const propose: HttpStory['propose'] = async (args, destination = 'tickets') => {
    const tool = toolOf(destinations, destination);
    const call = { destination, tool, arguments: args, requester: 'agent', run: { id: 'cutover' } };
    return operationOf(await ledger.write(call));
  };
  return {
    ledger,
    propose,
    write: async (args, destination) => until(ledger, (await propose(args, destination)).id, SETTLED),
    until: (id, isWanted) => until(ledger, id, isWanted),
    counterfoil: (args) => counterfoil([...args, '--data', data], { env: { HOME: folder } }),
    moveClock: (ms) => {
      offset += ms;
    },
    events: async (id) => (await ledger.readings.history(id)).map(({ event }) => event.type),
  };
}

function toolOf(destinations: StoryOptions['destinations'], name: string): string {
  return destinations[name]?.operation.id ?? '';
}

function writeFiles(
  folder: string,
  name: string,
  { class: toolClass, operation, url }: Required<StoryOptions['destinations'][string]>,
): string {
  mkdirSync(folder, { recursive: true });
  const contract = {
    contract: 1,
    id: name,
    revision: 1,
    destination: { name, protocol: 'http' },
    ownership: { owner: 'tests', reviewed_on: '2026-11-01', review_by: '2099-12-31' },
    operations: [operation],
  };
  writeFileSync(join(folder, 'contract.json'), JSON.stringify(contract));
  const file = join(folder, 'destination.json');
  const tools = { [operation.id]: { class: toolClass } };
  writeFileSync(
    file,
    JSON.stringify({
      destination: name,
      url,
      contract: 'contract.json',
      tools,
      timeouts: { connect: 'PT1S' },
    }),
  );
  return file;
}

// ── Contracts ────────────────────────────────────────────────────────────────────────────────────────────────

const EVIDENCE = { grade: 'drilled', source: 'test/stories/http-destination.mjs' };

const COMMON = {
  completion: { kind: 'synchronous' },
  guards: [],
  lookups: [],
  outcomes: [{ when: { status: [422] }, means: 'not_applied', evidence: EVIDENCE }],
  reversals: [{ kind: 'none', restores: 'nothing', evidence: EVIDENCE }],
  limits: { late_arrival: 'PT0S' },
};

const CREATE = {
  ...COMMON,
  id: 'ticket.create',
  match: ['POST /tickets'],
  effect: 'create',
  acknowledgement: { record: { from: 'json', path: '/id' } },
};

const FOUND = { items: { from: 'json', path: '/tickets' }, record: '/id' };

const LOOKUP = {
  by: 'client_reference',
  http: { path: '/tickets', query: { reference: '{$stamp}' } },
  found: { ...FOUND, where: [{ path: '/reference', equals: '{$stamp}' }] },
  consistency: { kind: 'read_after_write' },
  proves: { present: 'applied', absent: 'not_applied' },
  evidence: EVIDENCE,
};

/** R0: it does nothing at all for whoever has lost a reply. */
export const BARE: StatedOperation = {
  ...CREATE,
  http: { method: 'POST', path: '/tickets', body: { title: '{title}' } },
};

/** R1: it keeps our reference, and can be asked by it; how soon it shows what it took is the lookup's word. */
export function referenced(lookup: JsonObject = {}): StatedOperation {
  return {
    ...CREATE,
    stamp: { argument: 'reference' },
    http: { method: 'POST', path: '/tickets', body: { title: '{title}', reference: '{$stamp}' } },
    lookups: [{ ...LOOKUP, ...lookup }],
  };
}

/** It shows what it took some time later, and not there is not there only after that. */
export function lagging(settle: string): StatedOperation {
  return referenced({
    consistency: { kind: 'eventual', settle },
    proves: { present: 'applied', absent: 'not_applied_after_settle' },
  });
}

const KEY = {
  kind: 'request_key',
  carrier: { in: 'header', name: 'Idempotency-Key', encoding: 'opaque' },
  scope: ['account'],
  window: { kind: 'duration', at_least: 'PT1H', from: 'first_accept', after: 'executes_again' },
  same: { result: 'replays_original' },
  different: { result: 'rejected' },
  in_flight: { result: 'waits' },
  strength: 'enforced',
  evidence: EVIDENCE,
};

const BY_KEY = {
  by: 'request_key',
  http: { path: '/tickets', query: { key: '{$key}' } },
  found: { ...FOUND, where: [{ path: '/key', equals: '{$key}' }] },
  consistency: { kind: 'unknown' },
  proves: { present: 'applied', absent: 'nothing' },
  evidence: EVIDENCE,
};

/** R2: the contract says that it honours a key; with a look-up that proves only what is there, or with none. */
export function keyed(
  more: { readonly isLookedUp?: boolean; readonly proof?: JsonObject } = {},
): StatedOperation {
  return {
    ...CREATE,
    http: { method: 'POST', path: '/tickets', body: { title: '{title}' } },
    guards: [{ ...KEY, ...(more.proof === undefined ? {} : { honoured_proof: more.proof }) }],
    lookups: more.isLookedUp === true ? [BY_KEY] : [],
  };
}

/** It takes an id of ours, which is never free again; that it exists is a 409, and only a look-up tells whose it is. */
export const IDENTIFIED: StatedOperation = {
  ...COMMON,
  id: 'thing.create',
  match: ['POST /things'],
  effect: 'create',
  acknowledgement: { record: { from: 'json', path: '/id' } },
  http: { method: 'POST', path: '/things', body: { id: '{$key}', title: '{title}' } },
  guards: [
    {
      kind: 'client_identity',
      carrier: { in: 'body', name: 'id', encoding: 'identifier' },
      scope: ['container'],
      window: { kind: 'resource_lifetime' },
      same: { result: 'conflict', signal: { status: [409] } },
      different: { result: 'conflict', signal: { status: [409] } },
      in_flight: { result: 'serialised' },
      after_delete: 'blocked',
      strength: 'enforced',
      evidence: EVIDENCE,
    },
  ],
  lookups: [
    {
      by: 'client_identity',
      http: { path: '/things/{$key}' },
      found: { record: '/id', where: [{ path: '/id', equals: '{$key}' }] },
      absent_when: { status: [404] },
      consistency: { kind: 'read_after_write' },
      proves: { present: 'applied', absent: 'nothing' },
      evidence: EVIDENCE,
    },
  ],
  outcomes: [{ when: { status: [409] }, means: 'already_applied', next: 'look_up', evidence: EVIDENCE }],
};

/** R3: a page with a version that moves on with every change; what was written is read back. */
export function versioned(version: JsonObject = {}): StatedOperation {
  return {
    ...COMMON,
    id: 'page.set',
    match: ['PUT /pages/{page}'],
    effect: 'update',
    identity: ['page', 'state'],
    target: { type: 'page', id: '{page}' },
    acknowledgement: { version: { from: 'json', path: '/version' } },
    http: { method: 'PUT', path: '/pages/{page}', body: { state: '{state}' } },
    readback: {
      http: { path: '/pages/{page}' },
      matches: [{ path: '/state', equals: '{state}' }],
      version: { from: 'json', path: '/version' },
      evidence: EVIDENCE,
    },
    version: { kind: 'revision', aba_safe: 'yes', enforced: 'none', evidence: EVIDENCE, ...version },
  };
}
