// The documented shapes of ten APIs, in a process of its own with its own log: what is written is kept, what is asked for
// is found. Under /lost the answer to the first write is cut off after it was kept.

import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';

const [, , logPath] = process.argv;
const worlds = new Map();

/** One world for each address, so that the tests do not see each other's records. */
function worldOf(name) {
  if (!worlds.has(name)) worlds.set(name, { records: [], keys: [], zones: new Map(), writes: 0 });
  return worlds.get(name);
}

const NOW = '2026-11-30T12:00:00Z';

/** method, path → what is answered; `write` marks what is kept. */
const ROUTES = [
  [
    'POST',
    /^\/tickets\.json$/,
    write((body, id) => ({ ticket: { id, updated_at: NOW, ...body.ticket } }), 201),
  ],
  [
    'GET',
    /^\/tickets\.json$/,
    ({ query, records }) => ({
      tickets: records
        .map(({ ticket }) => ticket)
        .filter(({ external_id: reference }) => reference === query.get('external_id')),
    }),
  ],
  ['POST', /^\/issue$/, write((body, id) => ({ id: `${id}`, key: `OPS-${id}`, fields: body.fields }), 201)],
  [
    'POST',
    /^\/search\/jql$/,
    ({ body, records }) => ({
      issues: records.filter(({ fields }) => body.jql === `labels = "${fields.labels[0]}"`),
    }),
  ],
  [
    'POST',
    /^\/api\/now\/table\/\w+$/,
    write((body, id) => ({ result: { sys_id: `sys${id}`, sys_mod_count: '0', ...body } }), 201),
  ],
  [
    'GET',
    /^\/api\/now\/table\/\w+$/,
    ({ query, records }) => ({
      result: records
        .map(({ result }) => result)
        .filter((row) => query.get('sysparm_query') === `correlation_id=${row.correlation_id}`),
    }),
  ],
  ['POST', /^\/repos\/o\/r\/issues$/, write((body, number) => ({ number, updated_at: NOW, ...body }), 201)],
  ['GET', /^\/repos\/o\/r\/issues$/, ({ records }) => records.toReversed()],
  ['POST', /^\/chat\.postMessage$/, write((body, id) => ({ ok: true, ts: `170000.${id}`, message: body }))],
  [
    'GET',
    /^\/conversations\.history$/,
    ({ records }) => ({ ok: true, messages: records.map(({ message, ts }) => ({ ts, ...message })) }),
  ],
  ['POST', /^\/calendars\/c\/events$/, write((body) => ({ etag: '"1"', status: 'confirmed', ...body }))],
  [
    'GET',
    /^\/calendars\/c\/events\/(\w+)$/,
    ({ match, records }) => records.find(({ id }) => id === match[1]) ?? NOT_FOUND,
  ],
  ['POST', /^\/me\/events$/, write((body, id) => ({ id: `event-${id}`, changeKey: 'k1', ...body }), 201)],
  ['GET', /^\/me\/calendarView$/, ({ records }) => ({ value: records })],
  [
    'PATCH',
    /^\/servers\/localhost\/zones\/example\.org\.$/,
    write((body, _id, world) => {
      for (const { changetype, ...set } of body.rrsets) {
        const key = `${set.name} ${set.type}`;
        if (changetype === 'DELETE') world.zones.delete(key);
        else world.zones.set(key, set);
      }
    }, 204),
  ],
  [
    'GET',
    /^\/servers\/localhost\/zones\/example\.org\.$/,
    ({ query, world }) => ({
      rrsets: [...world.zones.values()].filter(
        ({ name, type }) => name === query.get('rrset_name') && type === query.get('rrset_type'),
      ),
    }),
  ],
  [
    'POST',
    /^\/servers\/localhost\/zones$/,
    write((body) => ({ id: body.name, edited_serial: 1, ...body }), 201),
  ],
  [
    'GET',
    /^\/servers\/localhost\/zones$/,
    ({ query, records }) => records.filter(({ name }) => name === query.get('zone')),
  ],
];

/** Objects of a cluster: a name is taken once, and a list is by its label. */
ROUTES.push(
  [
    'POST',
    /^\/apis\/apps\/v1\/namespaces\/n\/deployments$/,
    write((body, id) => {
      const { generateName: prefix, ...metadata } = body.metadata;
      const name = prefix === undefined ? metadata.name : `${prefix}${id}`;
      return { ...body, metadata: { ...metadata, name, uid: `uid-${id}`, resourceVersion: '1' } };
    }, 201),
  ],
  [
    'GET',
    /^\/apis\/apps\/v1\/namespaces\/n\/deployments\/([\w-]+)$/,
    ({ match, records }) => records.find(({ metadata }) => metadata.name === match[1]) ?? NOT_FOUND,
  ],
  [
    'GET',
    /^\/apis\/apps\/v1\/namespaces\/n\/deployments$/,
    ({ query, records }) => ({
      items: records.filter(
        ({ metadata }) => query.get('labelSelector') === `operation-id=${metadata.labels['operation-id']}`,
      ),
    }),
  ],
  [
    'POST',
    /^\/customers$/,
    write((body, id, world, headers) => {
      world.keys.push(headers['idempotency-key']);
      return { id: `cus_${id}`, email: body.email, metadata: { operation: body['metadata[operation]'] } };
    }),
  ],
  [
    'GET',
    /^\/events$/,
    ({ records, world }) => ({
      data: records.map((object, index) => ({
        type: 'customer.created',
        request: { idempotency_key: world.keys[index] },
        data: { object },
      })),
    }),
  ],
);

const NOT_FOUND = Symbol('not found');

function write(make, status = 200) {
  return { make, status };
}

async function answered(request, response) {
  const { pathname, searchParams } = new URL(request.url, 'http://localhost');
  const [, name, fault] = pathname.split('/');
  const path = decodeURIComponent(pathname.slice(name.length + fault.length + 2));
  const world = worldOf(name);
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString();
  const isForm = request.headers['content-type'] === 'application/x-www-form-urlencoded';
  const body =
    text === '' ? undefined : isForm ? Object.fromEntries(new URLSearchParams(text)) : JSON.parse(text);
  const route = ROUTES.find(([method, form]) => method === request.method && form.test(path));
  const log = (entry) => appendFileSync(logPath, `${JSON.stringify({ world: name, ...entry })}\n`);
  const answer = (status, value) => {
    response.writeHead(status, value === undefined ? {} : { 'content-type': 'application/json' });
    response.end(value === undefined ? undefined : JSON.stringify(value));
  };
  if (route === undefined) {
    log({ event: 'stray', method: request.method, path });
    return answer(404, { error: 'no such place' });
  }
  const [, form, does] = route;
  if (typeof does === 'function') {
    log({ event: 'question', path });
    const { records } = world;
    const found = does({ body, match: form.exec(path), query: searchParams, records, world });
    return found === NOT_FOUND ? answer(404, { error: 'not found' }) : answer(200, found);
  }
  world.writes += 1;
  const made = does.make(body, world.writes, world, request.headers);
  if (made !== undefined) world.records.push(made);
  log({ event: 'write', path, body });
  if (fault === 'lost' && world.writes === 1) return request.socket.destroy();
  return answer(does.status, made);
}

const server = createServer((request, response) => void answered(request, response));
server.listen(0, '127.0.0.1', () => process.stdout.write(`${server.address().port}\n`));
