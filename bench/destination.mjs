// The destination of the benchmark: an HTTP server in a process of its own that stores each record it is sent,
// and counts. Started by `destination-process.mjs`; it reports its port to its parent and ends with it.
//
//   POST /records      a JSON object with a `key`; answers { id, version, key } after the delay
//   GET  /records/KEY  the record as it was sent
//   GET  /count        { records, keys, twice }: all records, different keys, keys that came more than once
//   POST /reset        forgets everything

import { createServer } from 'node:http';

const delayMs = Number(process.argv[2] ?? 0);

let records = 0;
let byKey = new Map();
let twice = 0;

function store(text) {
  const { key } = JSON.parse(text);
  records += 1;
  if (byKey.has(key)) twice += 1;
  byKey.set(key, text);
  return JSON.stringify({ id: `CHG-${records}`, version: 1, key });
}

function answer(response, text, status = 200) {
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
  });
  response.end(text);
}

const server = createServer((request, response) => {
  if (request.method === 'POST' && request.url === '/records') {
    let text = '';
    request.setEncoding('utf8');
    request.on('data', (part) => {
      text += part;
    });
    request.on('end', () => {
      const reply = store(text);
      if (delayMs === 0) answer(response, reply);
      else setTimeout(() => answer(response, reply), delayMs);
    });
  } else if (request.method === 'GET' && request.url.startsWith('/records/')) {
    const text = byKey.get(decodeURIComponent(request.url.slice('/records/'.length)));
    if (text === undefined) answer(response, '{}', 404);
    else answer(response, text);
  } else if (request.method === 'GET' && request.url === '/count') {
    answer(response, JSON.stringify({ records, keys: byKey.size, twice }));
  } else if (request.method === 'POST' && request.url === '/reset') {
    records = 0;
    byKey = new Map();
    twice = 0;
    answer(response, '{}');
  } else {
    answer(response, '{}', 404);
  }
});

// Connections of a pool lie still while another leg runs; they are not to be closed under it.
server.keepAliveTimeout = 600_000;
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
process.on('disconnect', () => {
  server.close();
  server.closeAllConnections();
});
