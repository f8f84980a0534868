// A ledger in front of a destination over HTTP: files as an owner writes them, and a destination of its own.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { composeHttpDestination, composeLedger, type LedgerParts } from '../../src/compose.ts';
import type { JsonObject } from '../../src/core/canonical.ts';
import type { Operation } from '../../src/core/operation.ts';
import type { Ledger } from '../../src/engine/ledger.ts';
import type { HttpFixture, LogEntry } from '../destination/http-fixture.ts';
import { operationOf, until } from './setup.ts';

export interface HttpWorld {
  readonly ledger: Ledger;
  readonly writes: () => number;
  readonly records: () => number;
  readonly questions: () => number;
  readonly sent: () => readonly LogEntry[];
  /** Writes, and waits for nothing. */
  propose(args: JsonObject): Promise<string>;
  /** Writes, and waits until nothing is due any more. */
  write(args: JsonObject): Promise<Operation>;
  close(): Promise<void>;
}

const EVIDENCE = { grade: 'drilled', source: 'wire-faults/destination.mjs' };

/** An operation that creates a ticket under our own reference, by which it can be looked for. */
export const TICKET: JsonObject = {
  id: 'ticket.create',
  match: ['POST /tickets'],
  effect: 'create',
  stamp: { argument: 'reference' },
  http: {
    method: 'POST',
    path: '/tickets',
    body: { title: '{title}', reference: '{$stamp}' },
    answer: { echoes: [{ path: '/reference', equals: '{$stamp}' }] },
  },
  acknowledgement: { record: { from: 'json', path: '/id' } },
  completion: { kind: 'synchronous' },
  guards: [],
  lookups: [
    {
      by: 'client_reference',
      http: { path: '/tickets', query: { reference: '{$stamp}' } },
      found: { items: { from: 'json', path: '/tickets' }, record: '/id' },
      consistency: { kind: 'read_after_write' },
      proves: { present: 'applied', absent: 'not_applied' },
      evidence: EVIDENCE,
    },
  ],
  outcomes: [],
  reversals: [{ kind: 'none', restores: 'nothing', evidence: EVIDENCE }],
  limits: { late_arrival: 'PT0S' },
};

export function contractOf(operation: JsonObject): JsonObject {
  return {
    contract: 1,
    id: 'tickets',
    revision: 1,
    destination: { name: 'tickets', protocol: 'http' },
    ownership: { owner: 'tests', reviewed_on: '2026-11-01', review_by: '2099-12-31' },
    operations: [operation],
  };
}

/** The file of a configuration, with its contract beside it. */
export function writeFiles(folder: string, contract: JsonObject, configuration: JsonObject): string {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'contract.json'), JSON.stringify(contract));
  const file = join(folder, 'destination.json');
  writeFileSync(
    file,
    JSON.stringify({ destination: 'tickets', contract: 'contract.json', ...configuration }),
  );
  return file;
}

export async function httpWorld(
  server: HttpFixture,
  options: {
    readonly fault?: string;
    readonly operation?: JsonObject;
    readonly configuration?: JsonObject;
    readonly environment?: { readonly [name: string]: string };
    readonly settings?: LedgerParts['settings'];
    readonly url?: string;
  } = {},
): Promise<HttpWorld> {
  const url = options.url ?? server.url(options.fault);
  const cell = new URL(url).pathname.split('/')[2] ?? '';
  const logged = (event: LogEntry['event']) => server.log(event).filter((entry) => entry.cell === cell);
  const file = writeFiles(join(server.folder, `files-${cell}`), contractOf(options.operation ?? TICKET), {
    url,
    tools: { 'ticket.create': { class: 'ordinary' } },
    ...options.configuration,
  });
  const opened = await composeHttpDestination(file, { environment: options.environment ?? {} });
  const ledger = await composeLedger({
    data: ':memory:',
    http: [opened],
    settings: { callerWaitMs: 10_000, ...options.settings },
  });
  const propose = async (args: JsonObject): Promise<string> => {
    const call = { destination: 'tickets', tool: 'ticket.create', arguments: args, requester: 'agent' };
    return operationOf(await ledger.write({ ...call, run: { id: 'run-1' } })).id;
  };
  return {
    ledger,
    propose,
    writes: () => logged('write').length,
    sent: () => logged('write'),
    records: () => logged('record').length,
    questions: () => logged('question').length,
    async write(args) {
      return until(
        ledger,
        await propose(args),
        ({ stage, why }) => ['closed', 'parked'].includes(stage) || why?.code === 'waits_for_destination',
      );
    },
    close: () => ledger.close(),
  };
}
