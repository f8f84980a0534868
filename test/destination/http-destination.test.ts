import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { ContractOperation } from '../../src/core/contract.ts';
import type { HttpDestination } from '../../src/destination/http/http-destination.ts';
import { Secrets } from '../../src/destination/http/secrets.ts';
import type { LateReply, SendReport } from '../../src/destination/port.ts';
import { type DestinationFault, exerciseDestination } from '../../src/testing/exercise-destination.ts';
import {
  deadUrl,
  frozen,
  type HttpFixture,
  openAt,
  PLENTY_MS,
  sendRequest,
  startDestination,
  TIMEOUTS,
} from './http-fixture.ts';

let fixture: HttpFixture;
const opened: HttpDestination[] = [];
beforeAll(async () => {
  fixture = await startDestination();
});
afterEach(async () => {
  for (const destination of opened.splice(0)) await destination.close();
});
afterAll(() => fixture.stop());

function open(...given: Parameters<typeof openAt>): HttpDestination {
  const destination = openAt(...given);
  opened.push(destination);
  return destination;
}

/** What is read of a reply beyond its kind. */
function replyOf(report: SendReport) {
  if (report.left === 'no' || report.reply === undefined)
    throw new Error(`no reply: ${JSON.stringify(report)}`);
  return report.reply;
}

describe('the suite of the destination port, over HTTP', () => {
  const faults: Readonly<Partial<Record<DestinationFault, string>>> = {
    none: 'none',
    tool_error: 'error_500_after',
    unreachable: 'none',
    cut_before_record: 'rst_before',
    cut_after_record: 'rst_after',
    silent: 'drop_reply',
    held: 'late_reply',
    unreadable: 'garbage',
  };
  const start = async (fault: DestinationFault) => {
    const url = fault === 'unreachable' ? await deadUrl() : fixture.url(faults[fault]);
    const cell = new URL(url).pathname.split('/')[2];
    return {
      destination: openAt(url),
      tool: 'ticket.create',
      payload: (mark: string) => frozen(mark),
      question: { tool: 'GET /tickets', payload: JSON.stringify({ method: 'GET', path: ['tickets'] }) },
      countRecords: async () => fixture.log('record').filter((entry) => entry.cell === cell).length,
      // It answers by itself, some time after the short time-out of the suite.
      release: async () => {},
      stop: async () => {},
    };
  };
  const harness = { faults: Object.keys(faults) as DestinationFault[], start };
  for (const { name, run } of exerciseDestination(harness)) test(name, run);
});

describe('what is proven not to have left', () => {
  test.each([
    ['connection_refused', async () => deadUrl()],
    ['name_not_found', async () => 'http://nobody.invalid'],
    ['not_connected', async () => fixture.origin.replace('http:', 'https:')],
  ])('%s', async (proof, url) => {
    const destination = open(await url());
    const report = await destination.send(sendRequest(frozen('a')));
    expect(report).toMatchObject({ left: 'no', proof });
    expect(destination.isConnected()).toBe(false);
    expect((await destination.connect()).connected).toBe(false);
  });

  test('what stands in line for a connection too long has not left', async () => {
    const destination = open(fixture.url('drop_reply'), {
      connections: 1,
      timeouts: { ...TIMEOUTS, queueMs: 50 },
    });
    const first = destination.send(sendRequest(frozen('a')));
    const second = await destination.send(sendRequest(frozen('b')));
    expect(second).toMatchObject({ left: 'no', detail: 'all its connections are taken' });
    await destination.close();
    expect(await first).toMatchObject({ left: 'maybe', ended: 'aborted' });
  });

  test('while all connections are taken, nothing could be handed over at once', async () => {
    const timeouts = { ...TIMEOUTS, queueMs: 50 };
    const destination = open(fixture.url('drop_reply'), { connections: 1, timeouts });
    expect(await destination.connect()).toEqual({ connected: true });
    const first = destination.send(sendRequest(frozen('a'), { replyTimeoutMs: 5_000 }));
    await expect.poll(() => destination.isConnected()).toBe(false);
    expect(await destination.connect()).toEqual({
      connected: false,
      isAway: false,
      detail: 'all its connections are taken',
    });
    await destination.close();
    await first;
  });

  test('a destination that asks to be left alone is left alone', async () => {
    const destination = open(fixture.url('too_many_429'));
    await destination.connect();
    expect(replyOf(await destination.send(sendRequest(frozen('a')))).code).toBe(429);
    expect(destination.isConnected()).toBe(false);
    expect(await destination.connect()).toEqual({
      connected: false,
      isAway: false,
      detail: expect.stringMatching(/^it asked to be left alone until \d{4}-\d\d-\d\dT/),
    });
  });

  test.each([
    ['no JSON', '{'],
    ['no request', '{"arguments":{}}'],
  ])('a payload that holds %s is not sent', async (_what, payload) => {
    const report = await open(fixture.url()).send(sendRequest(payload));
    expect(report).toEqual({
      left: 'no',
      proof: 'refused_by_sender',
      detail: 'what was stored of it is no request over HTTP',
    });
  });

  test('a header that cannot be written is not sent', async () => {
    const url = fixture.url();
    const report = await open(url).send(sendRequest(frozen('a', { 'x-odd': 'a\nb' })));
    expect(report).toMatchObject({ left: 'no', proof: 'refused_by_sender' });
  });
});

describe('what comes in the place of an answer', () => {
  test.each([
    ['html_login', 200, 'page'],
    ['wrong_content_type', 201, 'page'],
    ['no_content', 204, 'empty'],
    ['redirect_302', 302, 'redirect'],
    ['redirect_307', 307, 'redirect'],
    ['bad_gateway_502_html', 502, 'page'],
    ['unavailable_503_before', 503, 'gateway'],
    ['timeout_408', 408, 'gateway'],
  ])('%s is a reply in doubt, and nothing is followed or sent again', async (fault, code, doubt) => {
    const url = fixture.url(fault);
    const report = await open(url).send(sendRequest(frozen('a')));
    expect(replyOf(report)).toMatchObject({ code, doubt });
    const cell = new URL(url).pathname.split('/')[2];
    expect(fixture.log('write').filter((entry) => entry.cell === cell)).toHaveLength(1);
    expect(fixture.log('question').filter((entry) => entry.cell === cell)).toHaveLength(0);
  });

  test.each([
    ['gzip_bomb', 'the reply unpacks to more than 65536 bytes'],
    ['over_long', 'the reply is longer than 65536 bytes'],
    ['header_overflow', 'Headers Overflow Error (UND_ERR_HEADERS_OVERFLOW)'],
  ])('%s is unreadable', async (fault, detail) => {
    const report = await open(fixture.url(fault), { replyMaxBytes: 65_536 }).send(sendRequest(frozen('a')));
    expect(report).toEqual({ left: 'maybe', ended: 'unreadable', detail });
  });

  test('an answer that names another request is none', async () => {
    const echoes = [{ path: '/title', equals: '{title}' }];
    const operations = new Map([
      ['ticket.create', { guards: [], http: { answer: { echoes } } } as unknown as ContractOperation],
    ]);
    const own = await open(fixture.url(), { operations }).send(sendRequest(frozen('a')));
    expect(replyOf(own).doubt).toBeUndefined();
    const other = await open(fixture.url('other_operation'), { operations }).send(sendRequest(frozen('a')));
    expect(replyOf(other).doubt).toBe('other');
  });

  test('of two answers the second is nobody’s', async () => {
    const destination = open(fixture.url('two_replies'), { connections: 1 });
    const first = replyOf(await destination.send(sendRequest(frozen('a'))));
    const second = replyOf(await destination.send(sendRequest(frozen('b'))));
    expect(JSON.parse(first.body)).toMatchObject({ id: 'T-1', title: 'a' });
    expect(JSON.parse(second.body)).toMatchObject({ id: 'T-2', title: 'b' });
  });
});

describe('time-outs of each phase', () => {
  test.each([
    ['slow_headers', { headersMs: 100 }, 'no headers of an answer within 100 ms'],
    ['truncated', { bodyMs: 10 }, undefined],
  ])('%s', async (fault, timeouts, detail) => {
    const destination = open(fixture.url(fault), { timeouts: { ...TIMEOUTS, ...timeouts } });
    const report = await destination.send(sendRequest(frozen('a')));
    expect(report).toMatchObject({ left: 'maybe', ended: expect.stringMatching(/timeout|cut/) });
    if (detail !== undefined) expect(report.detail).toBe(detail);
  });

  test('a body that drips has a whole time, whatever it drips', async () => {
    const destination = open(fixture.url('slow_body'));
    const report = await destination.send(sendRequest(frozen('a'), { replyTimeoutMs: 300 }));
    expect(report).toEqual({ left: 'maybe', ended: 'timeout', detail: 'no answer within 300 ms' });
  });

  test('an answer that comes later than it is waited for after its time is not told', async () => {
    const destination = open(fixture.url('late_reply'), { timeouts: { ...TIMEOUTS, lateMs: 50 } });
    const late: LateReply[] = [];
    destination.onLateReply = (one) => late.push(one);
    await destination.send(sendRequest(frozen('a'), { replyTimeoutMs: 100 }));
    // Its connection is free again, which it would not be while something is waited for.
    const next = await destination.send(sendRequest(frozen('b')));
    expect(replyOf(next).code).toBe(201);
    expect(late).toEqual([]);
  });
});

describe('secrets', () => {
  const headers = { Authorization: 'Bearer {token}' };

  test('are sent, and taken out of what the destination repeats', async () => {
    const secrets = new Secrets({ token: { env: 'TOKEN' } }, { TOKEN: 'canary-4711-canary' });
    const destination = open(fixture.url(), { headers, secrets });
    const report = await destination.send(sendRequest(frozen('it is canary-4711-canary')));
    const sent = fixture.log('write').at(-1);
    expect(sent?.headers?.['authorization']).toBe('Bearer canary-4711-canary');
    expect(JSON.stringify(report)).not.toContain('canary-4711');
    expect(JSON.parse(replyOf(report).body)).toMatchObject({ title: 'it is [the secret token]' });
  });

  test('and the address make the scope of a key: another one of either is another scope', () => {
    const scopeOf = (token: string, url = fixture.origin) =>
      open(url, { headers, secrets: new Secrets({ token: { env: 'T' } }, { T: token }) }).scope();
    expect(scopeOf('first-secret')).toBe(scopeOf('first-secret'));
    expect(scopeOf('second-secret')).not.toBe(scopeOf('first-secret'));
    expect(scopeOf('first-secret', `${fixture.origin}/eu`)).not.toBe(scopeOf('first-secret'));
    expect(scopeOf('')).toBeUndefined();
    expect(scopeOf('first-secret')).not.toContain('first');
  });

  test('in a file are read anew for each request', async () => {
    const file = join(fixture.folder, 'token');
    const destination = open(fixture.url(), { headers, secrets: new Secrets({ token: { file } }, {}) });
    writeFileSync(file, 'first-secret\n');
    await destination.send(sendRequest(frozen('a')));
    writeFileSync(file, 'second-secret\n');
    await destination.send(sendRequest(frozen('b')));
    const sent = fixture.log('write').slice(-2);
    expect(sent.map((entry) => entry.headers?.['authorization'])).toEqual([
      'Bearer first-secret',
      'Bearer second-secret',
    ]);
  });

  test.each([
    [{ env: 'TOKEN' }, 'the secret token is not there: the variable TOKEN is not set'],
    [{ file: '/nowhere/token' }, 'the secret token is not there: its file cannot be read (ENOENT)'],
    [{ env: 'BROKEN' }, 'the secret token has characters that no header can carry'],
  ])('that are missing keep everything from being sent: %j', async (reference, detail) => {
    const secrets = new Secrets({ token: reference }, { BROKEN: 'a\nb' });
    const url = fixture.url();
    const destination = open(url, { headers, secrets });
    expect(await destination.connect()).toEqual({ connected: false, detail, isAway: false });
    expect(await destination.send(sendRequest(frozen('a')))).toEqual({
      left: 'no',
      proof: 'refused_by_sender',
      detail,
    });
    const asked = await destination.ask({ tool: 'q', payload: '{"path":["tickets"]}', timeoutMs: PLENTY_MS });
    expect(asked).toEqual({
      answered: false,
      because: 'not_asked',
      detail: `q gave no answer: ${detail}`,
    });
    const cell = new URL(url).pathname.split('/')[2];
    expect(fixture.log().filter((entry) => entry.cell === cell)).toEqual([]);
  });
});

describe('questions', () => {
  const ask = (destination: HttpDestination, question: object) =>
    destination.ask({ tool: 'q', payload: JSON.stringify(question), timeoutMs: 2_000 });

  test('an address that the destination gave is asked only on the same origin', async () => {
    const url = fixture.url();
    const destination = open(url);
    const own = await ask(destination, { path: `${new URL(url).pathname}/tickets` });
    expect(own).toMatchObject({ answered: true, reply: { body: '{"tickets":[]}' } });
    for (const path of ['http://127.0.0.2:9/tickets', '//127.0.0.2:9/tickets', 'file:///etc/passwd']) {
      expect(await ask(destination, { path })).toEqual({
        answered: false,
        because: 'not_asked',
        detail: 'q gave no answer: it points to another place than the one that is configured',
      });
    }
  });

  test.each([
    ['lookup_html', 'it was answered with 200, as a page that is no answer', { because: 'unusable' }],
    ['lookup_redirect', 'it was answered with 302, as an address elsewhere', { because: 'unusable' }],
    // What stands in between may say so while the destination is away.
    ['lookup_503_once', 'it was answered with 503, as what stands in between answers as well', {}],
    ['lookup_cut_once', 'read ECONNRESET', {}],
  ])('%s is no answer', async (fault, why, because) => {
    const report = await ask(open(fixture.url(fault)), { path: ['tickets'] });
    expect(report).toEqual({ answered: false, ...because, detail: `q gave no answer: ${why}` });
  });

  test('an error is an answer, which the contract reads', async () => {
    const report = await ask(open(fixture.url()), { path: ['items', 'nobody'] });
    expect(report).toMatchObject({ answered: true, reply: { kind: 'tool_error', code: 404 } });
  });

  test.each([
    ['lookup_no_end', { pages_max: 3 }, 'there are more than 3 pages'],
    ['lookup_no_end', { pages_max: 9, rows_max: 2 }, 'there are more than 2 rows'],
    ['lookup_next_elsewhere', {}, 'it points to another place than the one that is configured'],
  ])('%s is inconclusive, never "absent"', async (fault, limits, why) => {
    const pages = { next: { link: 'next' }, items: '/tickets', ...limits };
    const report = await ask(open(fixture.url(fault)), { path: ['tickets'], pages });
    expect(report).toEqual({
      answered: false,
      because: 'unusable',
      detail: `q gave no answer: ${why}`,
    });
  });
});
