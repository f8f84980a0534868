// The shipped contracts that say how a write is sent, through a ledger of their own, at a process that answers in the
// documented shapes: what leaves, what is read out of the answer, and how a write is found whose answer was lost.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { readShipped, shippedFiles } from '../../src/contracts/catalogue.ts';
import { loadContract } from '../../src/contracts/load.ts';
import { openHttpDestination, openLedger } from '../../src/index.ts';

interface Written {
  readonly world: string;
  readonly event: 'write' | 'question' | 'stray';
  readonly path: string;
  readonly body?: unknown;
}

const START = { dateTime: '2026-12-01T10:00:00', timeZone: 'UTC' };
const END = { dateTime: '2026-12-01T11:00:00', timeZone: 'UTC' };
const OBJECT = {
  group: 'apps',
  version: 'v1',
  ns: 'n',
  resource: 'deployments',
  kind: 'Deployment',
  spec: {},
};
const RECORDS = [{ content: '192.0.2.7', disabled: false }];
const SET = { server_id: 'localhost', zone_id: 'example.org.', name: 'www.example.org.', type: 'A' };

/** Contract and operation, the arguments of a call, and the id that the destination gives it. */
const WRITES: readonly (readonly [string, string, { readonly [name: string]: unknown }, unknown])[] = [
  ['stripe', 'customer.create', { email: 'ada@example.org', name: 'Ada' }, 'cus_1'],
  ['kubernetes', 'object.create.named', { ...OBJECT, name: 'web' }, 'uid-1'],
  ['kubernetes', 'object.create.generated', { ...OBJECT, prefix: 'web-' }, 'uid-1'],
  ['zendesk-tickets', 'ticket.create', { subject: 'Printer', body: 'It burns.' }, '1'],
  ['jira-cloud', 'issue.create', { project: 'OPS', type: 'Task', summary: 'Move the database' }, 'OPS-1'],
  ['servicenow-table', 'record.create', { table: 'change_request', short_description: 'Move it' }, 'sys1'],
  ['github-issues', 'issue.create', { owner: 'o', repo: 'r', title: 'Crash', body: 'At start.' }, '1'],
  ['slack-chat', 'message.post', { channel: 'C1', text: 'Done.' }, '170000.1'],
  [
    'google-calendar',
    'event.insert',
    { calendarId: 'c', summary: 'Cutover', start: START, end: END },
    expect.stringMatching(/^[a-v0-9]{5,}$/),
  ],
  ['msgraph-events', 'event.create', { subject: 'Cutover', start: START, end: END }, 'event-1'],
  ['powerdns', 'rrset.replace', { ...SET, ttl: 300, records: RECORDS }, undefined],
  ['powerdns', 'rrset.delete', SET, undefined],
  [
    'powerdns',
    'zone.create',
    { server_id: 'localhost', name: 'example.net.', kind: 'Native' },
    'example.net.',
  ],
];

let child: ChildProcess;
let folder: string;
let origin: string;
let worlds = 0;
const cleanUps: (() => Promise<void>)[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'counterfoil-catalogue-'));
  writeFileSync(join(folder, 'log'), '');
  const api = fileURLToPath(new URL('./catalogue-api.mjs', import.meta.url));
  child = spawn(process.execPath, [api, join(folder, 'log')], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(child.stdout ?? process.stdin, 'data')) as [Buffer];
  origin = `http://127.0.0.1:${line.toString().trim()}`;
});
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});
afterAll(async () => {
  child.kill('SIGKILL');
  await once(child, 'exit');
  rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
});

async function setup(contract: string, operation: string, fault: 'none' | 'lost') {
  const world = `w${(worlds += 1)}`;
  writeFileSync(join(folder, `${contract}.yaml`), readShipped(`${contract}.contract.yaml`));
  const config = join(folder, `${world}.yaml`);
  writeFileSync(
    config,
    `destination: api\nurl: ${origin}/${world}/${fault}\ncontract: ${contract}.yaml\ntools: {${operation}: {class: ordinary}}\n`,
  );
  const destination = await openHttpDestination(config, { environment: {} });
  const ledger = await openLedger({ data: ':memory:', http: [destination] });
  cleanUps.push(() => ledger.close());
  const log = (event: Written['event']): readonly Written[] =>
    readFileSync(join(folder, 'log'), 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Written)
      .filter((entry) => entry.world === world && entry.event === event);
  const write = (args: { readonly [name: string]: unknown }) =>
    ledger.write({
      destination: 'api',
      tool: operation,
      arguments: args as Parameters<typeof ledger.write>[0]['arguments'],
      requester: 'agent',
      run: { id: 'catalogue' },
    });
  return { log, write };
}

describe.each(WRITES)('%s, %s', (contract, operation, args, record) => {
  const operationOf = (effect: string) => ({
    effect,
    ...(record === undefined ? {} : { record: { id: record } }),
  });

  it('is accepted, with the record that the answer names', async () => {
    const { log, write } = await setup(contract, operation, 'none');
    expect(await write(args)).toMatchObject({ operation: operationOf('accepted') });
    expect([log('write').length, log('stray')]).toEqual([1, []]);
  });

  it('is found again when its answer was lost, and left once', async () => {
    const { log, write } = await setup(contract, operation, 'lost');
    expect(await write(args)).toMatchObject({ operation: operationOf('accepted') });
    expect([log('write').length, log('stray')]).toEqual([1, []]);
    expect(log('question').length).toBeGreaterThan(0);
  });
});

it('each shipped write that can be asked about over HTTP is among these', () => {
  const askable = shippedFiles('contract').flatMap((file) => {
    const loaded = loadContract(readShipped(file), file);
    if (!loaded.ok) throw new Error(`${file} is right.`);
    return loaded.contract.operations
      .filter(
        ({ http, lookups }) => http !== undefined && lookups.some((lookup) => lookup.http !== undefined),
      )
      .map(({ id }) => `${loaded.contract.id} ${id}`);
  });
  expect(
    WRITES.map(([contract, operation]) => `${contract} ${operation}`).toSorted((a, b) => a.localeCompare(b)),
  ).toEqual(askable.toSorted((a, b) => a.localeCompare(b)));
});
