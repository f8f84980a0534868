// The destination of the stories over HTTP: a process of its own. Its log is its database and the proof: each effect is
// one line, written before anything is answered, and what another process of it wrote before is there again.
//
//   node http-destination.mjs LOG [PORT]      prints its port
//
//   POST /plan/CELL          what this cell does from now on, and what somebody else does there (see `plan`)
//   POST /c/CELL/tickets     makes a ticket; the same Idempotency-Key is answered with the first, where keys are honoured
//   GET  /c/CELL/tickets     those that can be seen by now, by `reference` or `key`
//   POST /c/CELL/things      makes a thing under the id that is given; one that is there, or was deleted, is a 409
//   GET  /c/CELL/things/ID   that thing, or 404
//   PUT  /c/CELL/pages/ID    sets its state, and gives it the next version
//   GET  /c/CELL/pages/ID    its state and version

import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const [log, port = '0'] = process.argv.slice(2);

// ── What it holds ────────────────────────────────────────────────────────────────────────────────────────────

const cells = new Map();

function cellOf(name) {
  const known = cells.get(name);
  if (known !== undefined) return known;
  const cell = {
    name,
    records: [],
    deleted: new Set(),
    /** What is done to the next writes and questions, first come first; then what is done to all others. */
    writes: [],
    questions: [],
    otherQuestions: 'answer',
    keys: 'honoured',
    /** True: the id of a thing that was deleted can be had again. */
    freesIds: false,
    /** A ticket is listed so long after it was made, and none before so many requests to write have come. */
    lagMs: 0,
    hidesUntil: 0,
    requests: 0,
  };
  cells.set(name, cell);
  return cell;
}

function note(cell, entry) {
  appendFileSync(log, `${JSON.stringify({ cell: cell.name, at: Date.now(), ...entry })}\n`);
}

function keep(cell, record) {
  const kept = { at: Date.now(), ...record };
  note(cell, { event: 'record', record: kept });
  cell.records.push(kept);
  return kept;
}

function remember() {
  if (!existsSync(log)) return;
  for (const line of readFileSync(log, 'utf8').split('\n')) {
    if (line === '') continue;
    const { cell, deleted, event, hidesUntil, record } = JSON.parse(line);
    if (event === 'write') cellOf(cell).requests += 1;
    if (event === 'planned') cellOf(cell).hidesUntil = hidesUntil;
    if (event === 'record') cellOf(cell).records.push(record);
    if (event === 'deleted') cellOf(cell).deleted.add(deleted);
  }
}

// ── Faults ───────────────────────────────────────────────────────────────────────────────────────────────────

/** `copy`: somebody makes what the newest ticket is once more. `remove`: somebody deletes the newest thing. */
function plan(cell, { copy, remove, ...faults }) {
  Object.assign(cell, faults);
  if (faults.hidesUntil !== undefined) note(cell, { event: 'planned', hidesUntil: faults.hidesUntil });
  if (copy === true) {
    const { id: _first, ...rest } = ofKind(cell, 'ticket').at(-1);
    keep(cell, { ...rest, id: `T-${ofKind(cell, 'ticket').length + 1}` });
  }
  if (remove === true) {
    const { id } = ofKind(cell, 'thing').at(-1);
    cell.deleted.add(id);
    note(cell, { event: 'deleted', deleted: id });
  }
}

const ofKind = (cell, kind) => cell.records.filter((record) => record.kind === kind);

/** What is done to this one; anything but an answer counts as a fault that fired. */
function next(cell, list, others) {
  const fault = list.shift() ?? others;
  if (fault !== 'answer') note(cell, { event: 'fault', fault });
  return fault;
}

// ── Writes ───────────────────────────────────────────────────────────────────────────────────────────────────

const WRITES = {
  tickets(cell, _id, body, key) {
    const known = ofKind(cell, 'ticket').find((ticket) => key !== undefined && ticket.key === key);
    if (known !== undefined && cell.keys === 'honoured') return [201, known];
    const id = `T-${ofKind(cell, 'ticket').length + 1}`;
    return [201, keep(cell, { kind: 'ticket', id, key, ...body })];
  },
  things(cell, _id, body) {
    const isFree = cell.freesIds && cell.deleted.delete(body.id);
    const isTaken = !isFree && ofKind(cell, 'thing').some(({ id }) => id === body.id);
    if (isTaken) return [409, { error: { code: 'exists', message: 'That id is taken.' } }];
    return [201, keep(cell, { kind: 'thing', ...body })];
  },
  pages: (cell, id, body, _key, fault) => {
    const before = pageOf(cell, id)?.state ?? 'empty';
    const answer = write(cell, id, body.state, fault === 'keep_old' ? before : body.state);
    if (fault === 'overwritten') write(cell, id, 'by somebody else', 'by somebody else');
    return [200, answer];
  },
};

function pageOf(cell, wanted) {
  return ofKind(cell, 'page').findLast(({ id }) => id === wanted);
}

/** @param says what is answered; `state` is what is kept */
function write(cell, id, says, state) {
  const version = (pageOf(cell, id)?.version ?? 0) + 1;
  keep(cell, { kind: 'page', id, state, version });
  return { id, state: says, version };
}

function answerWrite(cell, [kind, id], request, response, body) {
  const fault = next(cell, cell.writes, 'answer');
  cell.requests += 1;
  const key = request.headers['idempotency-key'];
  note(cell, { event: 'write', key, body });
  if (fault === 'refuse') return json(response, 422, { error: { code: 'closed', message: 'It is closed.' } });
  if (fault === 'cut_before') return void response.socket.destroy();
  if (fault === 'hang_before') return undefined;
  const [status, record] = WRITES[kind](cell, id, body, key, fault);
  if (fault === 'die') process.exit(1);
  if (fault === 'lose_reply') return void response.socket.destroy();
  return json(response, status, record);
}

// ── Questions ────────────────────────────────────────────────────────────────────────────────────────────────

const READS = {
  tickets(cell, _id, query) {
    const isMeant = (ticket) =>
      ['key', 'reference'].every((name) => !query.has(name) || query.get(name) === ticket[name]);
    const isSeen = ({ at }) => Date.now() - at >= cell.lagMs && cell.requests >= cell.hidesUntil;
    return [200, { tickets: ofKind(cell, 'ticket').filter((ticket) => isMeant(ticket) && isSeen(ticket)) }];
  },
  things(cell, wanted) {
    const thing = ofKind(cell, 'thing').find(({ id }) => id === wanted);
    return thing === undefined || cell.deleted.has(wanted) ? [404, { error: 'none' }] : [200, thing];
  },
  pages: (cell, id) => [200, pageOf(cell, id) ?? { id, state: 'empty', version: 0 }],
};

function answerQuestion(cell, [kind, id], query, response) {
  note(cell, { event: 'question', kind });
  switch (next(cell, cell.questions, cell.otherQuestions)) {
    case 'hang':
      return undefined;
    case 'cut':
      return void response.socket.destroy();
    case 'unavailable':
      return json(response, 503, { error: 'later' });
    default:
      return json(response, ...READS[kind](cell, id, query));
  }
}

// ── The server ───────────────────────────────────────────────────────────────────────────────────────────────

function json(response, status, body) {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

remember();
const server = createServer((request, response) => {
  const chunks = [];
  request.on('error', () => {});
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    const url = new URL(request.url, 'http://destination');
    const [, where, name, ...below] = url.pathname.split('/').map(decodeURIComponent);
    const cell = cellOf(name);
    const text = Buffer.concat(chunks).toString('utf8');
    const body = text === '' ? {} : JSON.parse(text);
    if (where === 'plan') {
      plan(cell, body);
      json(response, 200, {});
    } else if (request.method === 'GET') answerQuestion(cell, below, url.searchParams, response);
    else answerWrite(cell, below, request, response, body);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(Number(port), '127.0.0.1', () => process.stdout.write(`${server.address().port}\n`));
