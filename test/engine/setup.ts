// A ledger over a counting destination in this process, with a clock that a test can move.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { composeLedger, type LedgerParts } from '../../src/compose.ts';
import type { JsonObject } from '../../src/core/canonical.ts';
import type { ContractOperation, ToolFacts } from '../../src/core/contract.ts';
import type { Operation } from '../../src/core/operation.ts';
import { functionDestination } from '../../src/destination/function-destination.ts';
import type { Answer } from '../../src/engine/answers.ts';
import { systemEnvironment } from '../../src/engine/environment.ts';
import type { Ledger } from '../../src/engine/ledger.ts';
import { elsewhere, placeOf } from './places.ts';

export interface Fixture {
  readonly ledger: Ledger;
  readonly data: string;
  /** What the destination holds, in order of arrival. */
  readonly records: JsonObject[];
  /** What the destination does with the next sends, first come first; it answers when the list is empty. */
  readonly faults: Fault[];
  write(tool: string, args: JsonObject, more?: Partial<Parameters<Ledger['write']>[0]>): Promise<Answer>;
  moveClock(ms: number): void;
  open(parts?: Partial<LedgerParts>): Promise<Ledger>;
  close(): Promise<void>;
}

export type Fault =
  | 'lose_reply'
  | 'lose_request'
  | 'refuse'
  | { readonly wait: Promise<void> }
  | { readonly loseReplyAfter: Promise<void> }
  | { readonly loseRequestAfter: Promise<void> };

const SOURCE = { grade: 'source' } as const;

/** A contract whose look-up reads a list, and whose absence counts at once. */
export function lookedUpBy(overrides: Partial<ContractOperation> = {}): ContractOperation {
  return {
    id: 'record.create',
    match: ['create'],
    effect: 'create',
    completion: { kind: 'synchronous' },
    guards: [],
    lookups: [
      {
        by: 'natural_fields',
        tool: { name: 'find', arguments: { title: '{title}' } },
        found: { items: { from: 'json', path: '' }, record: '/id' },
        consistency: { kind: 'read_after_write' },
        unique: 'yes',
        proves: { present: 'applied', absent: 'not_applied' },
        evidence: SOURCE,
      },
    ],
    outcomes: [],
    reversals: [{ kind: 'none', evidence: SOURCE }],
    limits: { late_arrival: 'PT0S' },
    ...overrides,
  };
}

export function factsOf(tool: string, overrides: Partial<ToolFacts> = {}): ToolFacts {
  return {
    destination: 'cab',
    tool,
    class: 'ordinary',
    classSource: 'configuration',
    repeat: 'unique',
    checksArguments: false,
    digest: tool,
    ...overrides,
  };
}

const DEFAULT_FACTS: { readonly [tool: string]: ToolFacts } = {
  create: factsOf('create'),
  create_found: factsOf('create_found', { operation: lookedUpBy() }),
  set: factsOf('set', { repeat: 'state', target: { type: 'record', id: ['{id}'] } }),
  append: factsOf('append', { repeat: 'free' }),
  destroy: factsOf('destroy', { class: 'irreversible' }),
  unheard_of: factsOf('unheard_of', { class: 'unclassified', classSource: 'nobody', repeat: 'free' }),
};

export async function setup(
  options: {
    readonly facts?: { readonly [tool: string]: ToolFacts };
    readonly settings?: LedgerParts['settings'];
    readonly onDisk?: boolean;
  } = {},
): Promise<Fixture> {
  const data = options.onDisk === true ? await mkdtemp(join(tmpdir(), 'counterfoil-')) : ':memory:';
  const records: JsonObject[] = [];
  const faults: Fault[] = [];
  let offset = 0;
  const facts = { ...DEFAULT_FACTS, ...options.facts };
  const opened: Ledger[] = [];
  if (data !== ':memory:') await placeOf(data);
  const open = async (parts: Partial<LedgerParts> = {}): Promise<Ledger> => {
    const system = systemEnvironment();
    const ledger = await composeLedger({
      data,
      destinations: [destination(records, faults, Object.keys(facts))],
      factsFor: (_destination, tool) => facts[tool],
      environment: { ...system, now: () => system.now() + offset },
      settings: { callerWaitMs: 5_000, ...options.settings },
      ...(data === ':memory:' && parts.store === undefined ? elsewhere() : {}),
      ...parts,
    });
    opened.push(ledger);
    return ledger;
  };
  const ledger = await open();
  return {
    ledger,
    data,
    records,
    faults,
    open,
    write: (tool, args, more = {}) =>
      ledger.write({ destination: 'cab', tool, arguments: args, requester: 'agent', ...more }),
    moveClock: (ms) => {
      offset += ms;
    },
    async close() {
      for (const one of opened) await one.close();
      if (data !== ':memory:') await rm(data, { recursive: true, force: true });
    },
  };
}

function destination(records: JsonObject[], faults: Fault[], tools: readonly string[]) {
  const send = async (args: JsonObject, context: { notSent(reason: string): Error }): Promise<unknown> => {
    const fault = faults.shift();
    if (fault === 'refuse') throw context.notSent('connection refused');
    if (fault === 'lose_request') throw new Error('connection reset');
    if (typeof fault === 'object' && 'wait' in fault) await fault.wait;
    if (typeof fault === 'object' && 'loseRequestAfter' in fault) {
      await fault.loseRequestAfter;
      throw new Error('connection reset');
    }
    records.push(args);
    const id = `CHG-${records.length}`;
    if (fault === 'lose_reply') throw new Error('connection reset');
    if (typeof fault === 'object' && 'loseReplyAfter' in fault) {
      await fault.loseReplyAfter;
      throw new Error('connection reset');
    }
    return { content: [{ type: 'text', text: id }] };
  };
  const find = (args: JsonObject): unknown => {
    const found = records.flatMap((record, index) =>
      record['title'] === args['title'] ? [{ id: `CHG-${index + 1}` }] : [],
    );
    return { content: [{ type: 'text', text: JSON.stringify(found) }] };
  };
  return functionDestination({
    name: 'cab',
    tools: Object.fromEntries(tools.map((tool) => [tool, send])),
    asks: { find },
  });
}

/** The operation of an answer, which must have one. */
export function operationOf(answer: Answer): Operation {
  if (answer.kind === 'not_recorded') throw new Error(`not recorded: ${answer.detail}`);
  if (answer.kind === 'pass') throw new Error(`passed: ${answer.detail}`);
  if (answer.kind === 'fate_unknown') throw new Error(`of unknown fate: ${answer.operation}`);
  return answer.operation;
}

/** Resolves when the operation is as wanted; fails with what it is after the time-out. */
export async function until(
  ledger: Ledger,
  id: string,
  isWanted: (operation: Operation) => boolean,
): Promise<Operation> {
  const endsAt = Date.now() + 10_000;
  for (;;) {
    const record = await ledger.readings.record(id);
    if (record !== undefined && isWanted(record.operation)) return record.operation;
    if (Date.now() > endsAt) throw new Error(`still ${JSON.stringify(record?.operation)}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** A promise and the way to keep it. */
export function signal(): { readonly promise: Promise<void>; readonly give: () => void } {
  let give = (): void => {};
  const promise = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { promise, give };
}
