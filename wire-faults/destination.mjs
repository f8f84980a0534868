// The destination of the wire-fault table: a process of its own that records what it was asked to, in its own log, and
// does to one request what its address names. `/w/CELL/FAULT/tickets`: each cell has records of its own.
//
// node wire-faults/destination.mjs LOG    prints its port

import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';

const HTML = '<!doctype html><title>Sign in</title><form action="/login"></form>';
/** What the look-up of a write answers never ends, or is not there, for these; the write itself ends without reply. */
const LOOKUPS = {
  lookup_cut_once: { times: 1, answer: ({ response }) => response.socket.resetAndDestroy() },
  lookup_503_once: { times: 1, answer: ({ reply }) => reply(503, { message: 'later' }) },
  lookup_500: { answer: ({ reply }) => reply(500, { message: 'broken' }) },
  lookup_hang: { answer: () => {} },
  lookup_html: { answer: ({ response }) => page(response, 200) },
  lookup_redirect: { answer: ({ response, self }) => redirect(response, 302, `${self}/login`) },
  lookup_lags: { times: 2, answer: ({ empty }) => empty() },
  lookup_two_matches: { answer: ({ twice }) => twice() },
  lookup_no_end: { answer: ({ endless }) => endless() },
  // Only where a key is counted on: what was written is not shown, and the repeat under the same key is done again.
  key_passed_over: {
    answer: ({ cell, empty, isKeyed, normal }) => (isKeyed && cell.writes < 2 ? empty() : normal()),
  },
  lookup_next_elsewhere: { answer: ({ elsewhere }) => elsewhere() },
};

/** By name: what is done to the first write. `apply` records it, and gives the reply that it would have had. */
const WRITE_FAULTS = {
  drop_request: () => {},
  drop_reply: ({ apply }) => void apply(),
  delay_short: ({ apply, reply }) => later(60, () => reply(...apply())),
  late_reply: ({ apply, reply }) => {
    const answer = apply();
    later(LATE_MS, () => reply(...answer));
  },
  rst_before: ({ response }) => response.socket.resetAndDestroy(),
  rst_after: ({ apply, response }) => (apply(), response.socket.resetAndDestroy()),
  fin_before: ({ response }) => response.socket.destroy(),
  fin_after: ({ apply, response }) => (apply(), response.socket.destroy()),
  half_close: ({ apply, response }) => (apply(), response.socket.end()),
  slow_headers: ({ apply, response }) => (apply(), drip(response.socket, 'HTTP/1.1 201 Created\r\nX-Slow: ')),
  slow_body: ({ apply, response }) => {
    apply();
    response.writeHead(201, { 'content-type': 'application/json', 'content-length': 4000 });
    response.flushHeaders();
    drip(response.socket, '');
  },
  truncated: ({ apply, response }) => {
    const body = JSON.stringify(apply()[1]);
    response.writeHead(201, { 'content-type': 'application/json', 'content-length': body.length + 100 });
    response.write(body);
    later(20, () => response.socket.destroy());
  },
  over_long: ({ apply, response }) => {
    apply();
    response.writeHead(201, { 'content-type': 'application/json' });
    response.write(`{"id":"`);
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(16_384)));
      if (!response.destroyed) response.once('drain', more);
    };
    more();
  },
  garbage: ({ apply, response }) => (apply(), response.socket.end('220 mail.example ESMTP\r\n')),
  wrong_content_type: ({ apply, response }) => {
    apply();
    response.writeHead(201, { 'content-type': 'text/plain' });
    response.end('Created.');
  },
  html_login: ({ apply, response }) => (apply(), page(response, 200)),
  error_in_200: ({ reply }) => reply(200, { error: { code: 'refused', message: 'The period is closed.' } }),
  odd_error_in_200: ({ reply }) => reply(200, { error: { code: 'odd', message: 'Something went wrong.' } }),
  created_without_id: ({ apply, reply }) => (apply(), reply(201, {})),
  no_content: ({ apply, response }) => (apply(), response.writeHead(204).end()),
  accepted_done: ({ work }) => work(['queued', 'running', 'done']),
  accepted_never: ({ work }) => work(['queued', 'running']),
  accepted_failed: ({ work }) => work(['queued', 'failed']),
  accepted_flips: ({ work }) => work(['running', 'done', 'failed']),
  redirect_302: ({ response, self }) => redirect(response, 302, `${self}/elsewhere`),
  redirect_307: ({ response, self }) => redirect(response, 307, `${self}/elsewhere`),
  unauthorized_401: ({ reply }) => reply(401, { message: 'The token has ended.' }),
  timeout_408: ({ reply }) => reply(408, { message: 'Too slow.' }),
  too_early_425: ({ reply }) => reply(425, { message: 'Too early.' }),
  invalid_422: ({ reply }) => reply(422, { message: 'The title is too long.' }),
  too_many_429: ({ reply }) => reply(429, { message: 'Slow down.' }, { 'retry-after': '86400' }),
  error_500_before: ({ reply }) => reply(500, { message: 'broken' }),
  error_500_after: ({ apply, reply }) => (apply(), reply(500, { message: 'broken' })),
  bad_gateway_502_html: ({ apply, response }) => (apply(), page(response, 502)),
  unavailable_503_before: ({ reply }) => reply(503, { message: 'later' }),
  unavailable_503_after: ({ apply, reply }) => (apply(), reply(503, { message: 'later' })),
  duplicate_answered: ({ apply, reply }) => (apply(), reply(...apply())),
  duplicate_cut: ({ apply, response }) => (apply(), apply(), response.socket.destroy()),
  other_operation: ({ apply, reply }) => {
    const [status, body] = apply();
    reply(status, { ...body, title: 'another one', reference: 'op_another' });
  },
  two_replies: ({ apply, response }) => {
    const body = JSON.stringify(apply()[1]);
    const one = `HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    response.socket.write(one + one);
  },
  gzip_bomb: ({ apply, response }) => {
    apply();
    response.writeHead(201, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
    response.end(gzipSync(`{"id":"${'0'.repeat(8 * 1024 * 1024)}"}`));
  },
  continue_hang: ({ response }) => response.socket.write('HTTP/1.1 100 Continue\r\n\r\n'),
  header_overflow: ({ apply, response }) => {
    apply();
    response.socket.write(`HTTP/1.1 201 Created\r\nX-Long: ${'x'.repeat(200_000)}\r\n\r\n`);
  },
  // The connection is one that was kept: what was said on it before is whole, and it ends as this is written.
  keep_alive_race: ({ response }) => response.socket.resetAndDestroy(),
};

const LATE_MS = 1_200;

export const LOOKUP_FAULTS = Object.keys(LOOKUPS);
export const SERVED_FAULTS = [...Object.keys(WRITE_FAULTS), ...LOOKUP_FAULTS];
/** The write itself is applied, and its reply cut, where a look-up is what goes wrong. */
for (const name of LOOKUP_FAULTS) WRITE_FAULTS[name] = WRITE_FAULTS.fin_after;
/** A connection that was kept needs something before it: the fault is done to the second write. */
export const isSecond = (fault) => fault === 'keep_alive_race';

function later(ms, run) {
  setTimeout(() => run(), ms).unref();
}

function drip(socket, beginning) {
  socket.write(beginning);
  const timer = setInterval(() => (socket.destroyed ? clearInterval(timer) : socket.write('x')), 40);
  timer.unref();
}

function page(response, status) {
  response.writeHead(status, { 'content-type': 'text/html; charset=utf-8' });
  response.end(HTML);
}

function redirect(response, status, location) {
  response.writeHead(status, { location, 'content-type': 'application/json' });
  response.end('{}');
}

function json(response, status, body, headers = {}) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

/** What one cell holds. */
class Cell {
  tickets = [];
  items = new Map();
  byKey = new Map();
  jobs = new Map();
  writes = 0;
  lookups = 0;
}

function serve(log) {
  const cells = new Map();
  const note = (entry) => appendFileSync(log, `${JSON.stringify(entry)}\n`);

  const server = createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const url = new URL(request.url, 'http://destination');
      const [, , name = '', fault = '', ...below] = url.pathname.split('/').map(decodeURIComponent);
      // Whatever a ticket is in, it is a ticket: `/queues/billing/tickets` is `/tickets`.
      const [kind = '', ...rest] = below[0] === 'queues' ? below.slice(2) : below;
      const cell = cells.get(name) ?? new Cell();
      cells.set(name, cell);
      const text = Buffer.concat(chunks).toString('utf8');
      const self = `/w/${name}/${fault}`;
      const told = { name, fault, cell, kind, rest, self, url, request, response, note };
      if (request.method === 'GET') answerQuestion(told);
      else answerWrite({ ...told, body: text === '' ? {} : JSON.parse(text) });
    });
    request.on('error', () => {});
  });
  server.keepAliveTimeout = 60_000;
  server.on('clientError', (_, socket) => socket.destroy());
  return server;
}

function answerWrite(told) {
  const { cell, fault, name, note, request, response, self } = told;
  cell.writes += 1;
  note({ cell: name, event: 'write', headers: request.headers, path: request.url, body: told.body });
  const apply = () => applied(told);
  const reply = (status, body, headers) => json(response, status, body, headers);
  const act = WRITE_FAULTS[fault];
  if (act === undefined || cell.writes !== (isSecond(fault) ? 2 : 1)) {
    reply(...apply());
    return;
  }
  note({ cell: name, event: 'fired', fault });
  const work = (states) => {
    const id = `job-${cell.jobs.size + 1}`;
    cell.jobs.set(id, { states, asked: 0, told });
    json(response, 202, { job: { id }, reference: told.body.reference, title: told.body.title });
  };
  act({ apply, reply, response, self, work });
}

/** The write, recorded: a repeat under the same key is answered as the first was. */
function applied({ body, cell, fault, kind, name, note, request, rest }) {
  const key = request.headers['idempotency-key'];
  const known = key === undefined || fault === 'key_passed_over' ? undefined : cell.byKey.get(key);
  if (known !== undefined) return known;
  const held = cell.items.get(rest[0]);
  const wanted = request.headers['if-match'];
  if (wanted !== undefined && wanted !== `"${held?.version ?? 0}"`)
    return [412, { message: 'it has changed' }];
  note({ cell: name, event: 'record', kind });
  if (kind === 'items') {
    const id = rest[0];
    const version = (cell.items.get(id)?.version ?? 0) + 1;
    const isNew = version === 1;
    cell.items.set(id, { id, version, ...body });
    return [isNew ? 201 : 200, cell.items.get(id), { etag: `"${version}"` }];
  }
  const ticket = { id: `T-${cell.tickets.length + 1}`, ...body, ...(key === undefined ? {} : { key }) };
  cell.tickets.push(ticket);
  const answer = [201, ticket];
  if (key !== undefined) cell.byKey.set(key, answer);
  return answer;
}

function answerQuestion(told) {
  const { cell, fault, kind, name, note, response, rest, self, url } = told;
  note({ cell: name, event: 'question', kind });
  if (kind === 'jobs') {
    answerJob(told);
    return;
  }
  if (kind === '') {
    json(response, 200, {});
    return;
  }
  cell.lookups += 1;
  const reply = (status, body, headers) => json(response, status, body, headers);
  const matching = cell.tickets.filter((ticket) =>
    ['reference', 'key', 'title'].every(
      (field) => (url.searchParams.get(field) ?? ticket[field]) === ticket[field],
    ),
  );
  const item = cell.items.get(rest[0]);
  const normal = () => {
    if (kind !== 'items') reply(200, { tickets: matching });
    else if (item === undefined) reply(404, { message: 'there is none' });
    else reply(200, item);
  };
  const planned = LOOKUPS[fault];
  if (planned === undefined || cell.lookups > (planned.times ?? Number.POSITIVE_INFINITY)) {
    normal();
    return;
  }
  note({ cell: name, event: 'fired', fault });
  const isList = kind === 'tickets';
  planned.answer({
    cell,
    isKeyed: name.startsWith('R2'),
    normal,
    reply,
    response,
    self,
    empty: () => (isList ? reply(200, { tickets: [] }) : reply(404, { message: 'there is none' })),
    twice: () => (isList ? reply(200, { tickets: [...matching, ...matching] }) : normal()),
    endless: () =>
      isList
        ? reply(
            200,
            { tickets: [{ id: 'T-0', reference: 'another' }] },
            { link: `<${self}/tickets?at=${cell.lookups}>; rel="next"` },
          )
        : normal(),
    elsewhere: () =>
      isList ? reply(200, { tickets: [] }, { link: '<http://127.0.0.2:9/tickets>; rel="next"' }) : normal(),
  });
}

/** Work that goes on: one state further each time it is asked, and the last one stays. */
function answerJob({ cell, response, rest }) {
  const job = cell.jobs.get(rest[0]);
  if (job === undefined) {
    json(response, 404, { message: 'there is none' });
    return;
  }
  const state = job.states[Math.min(job.asked, job.states.length - 1)];
  job.asked += 1;
  if (state === 'done' && job.record === undefined) job.record = applied(job.told)[1];
  json(response, 200, { state, ...(state === 'done' ? { ticket: { id: job.record.id } } : {}) });
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const server = serve(process.argv[2]);
  server.listen(0, '127.0.0.1', () => process.stdout.write(`${server.address().port}\n`));
}
