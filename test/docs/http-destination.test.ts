import { createHmac } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { openHttpDestination, openLedger } from '../../src/index.ts';
import { type HttpFixture, startDestination } from '../destination/http-fixture.ts';

const PAGE = readFileSync(new URL('../../docs/http-destination.md', import.meta.url), 'utf8');
/** The files of the page, by the name in their first line. */
const files = new Map(
  [...PAGE.matchAll(/```yaml\n# (\S+\.yaml)\n([\s\S]*?)```/g)].map(([, name = '', text = '']) => [
    name,
    text,
  ]),
);

const cleanUps: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function setup(server: HttpFixture, fault: string) {
  const folder = mkdtempSync(join(tmpdir(), 'counterfoil-docs-'));
  cleanUps.push(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, text] of files) {
    writeFileSync(join(folder, name), text.replace('http://127.0.0.1:8080/api', server.url(fault)));
  }
  const signing = `whsec_${Buffer.from('a secret').toString('base64')}`;
  const environment = { TICKETS_TOKEN: 'canary-of-the-page', TICKETS_SIGNING: signing };
  const tickets = await openHttpDestination(join(folder, 'tickets.destination.yaml'), { environment });
  const ledger = await openLedger({ data: ':memory:', http: [tickets] });
  cleanUps.push(() => ledger.close());
  const write = () =>
    ledger.write({
      destination: 'tickets',
      tool: 'ticket.create',
      arguments: { queue: 'billing', title: 'Move the database' },
      requester: 'cutover agent',
      run: { id: 'cutover billing' },
    });
  return { ledger, signing, write };
}

async function destination(): Promise<HttpFixture> {
  const server = await startDestination();
  cleanUps.push(server.stop);
  return server;
}

test('the page has two files, which are taken as they stand: one request, with its key and its reference', async () => {
  expect([...files.keys()]).toEqual(['tickets.destination.yaml', 'tickets.contract.yaml']);
  const server = await destination();
  const { write } = await setup(server, 'none');
  const answer = await write();
  expect(answer).toMatchObject({ kind: 'reply', operation: { effect: 'accepted', record: { id: 'T-1' } } });
  expect(await write()).toMatchObject({ kind: 'already_exists' });
  const sent = server.log('write');
  expect(sent).toHaveLength(1);
  expect(sent[0]?.headers).toMatchObject({
    authorization: 'Bearer canary-of-the-page',
    'idempotency-key': expect.stringMatching(/^[0-9a-f-]{36}$/),
  });
  expect(sent[0]?.path).toMatch(/\/queues\/billing\/tickets$/);
});

test('an answer that is lost is looked up, over pages, by the reference', async () => {
  const server = await destination();
  const { write } = await setup(server, 'rst_after');
  expect(await write()).toMatchObject({ operation: { effect: 'accepted', record: { id: 'T-1' } } });
  expect(server.log('record')).toHaveLength(1);
});

test('a notice is taken by its signature, and recorded once', async () => {
  const { ledger, signing, write } = await setup(await destination(), 'none');
  const answer = await write();
  const id = 'operation' in answer && typeof answer.operation !== 'string' ? answer.operation.id : '';
  const body = Buffer.from(JSON.stringify({ type: 'ticket.created', data: { reference: id } }));
  const at = String(Math.floor(Date.now() / 1000));
  const key = Buffer.from(signing.slice(6), 'base64');
  const signature = createHmac('sha256', key).update(`msg_1.${at}.${body.toString()}`).digest('base64');
  const headers = { 'webhook-id': 'msg_1', 'webhook-timestamp': at, 'webhook-signature': `v1,${signature}` };
  expect(await ledger.notice({ destination: 'tickets', headers, body })).toEqual({
    recorded: true,
    operation: id,
    again: false,
  });
});
