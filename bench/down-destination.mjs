// One destination of the measurement `--down`: an HTTP server in a process of its own, which its parent lets answer, hang,
// or refuse connections. It keeps tickets by our reference, and counts them.
//
//   POST /tickets              { reference, title }; answers { id, reference }
//   GET  /tickets?reference=   { tickets: [...] }

import { createServer } from 'node:http';

const tickets = new Map();
const sockets = new Set();
let port = 0;
let twice = 0;
let manner = 'up';

const server = createServer((request, response) => {
  let text = '';
  request.setEncoding('utf8');
  request.on('data', (part) => {
    text += part;
  });
  request.on('error', () => {});
  request.on('end', () => {
    if (manner === 'hanging') return;
    if (request.method === 'POST') answer(response, kept(JSON.parse(text)));
    else {
      const wanted = new URL(request.url, 'http://destination').searchParams.get('reference');
      const found = tickets.get(wanted);
      answer(response, { tickets: found === undefined ? [] : [found] });
    }
  });
});

function kept({ reference, title }) {
  if (tickets.has(reference)) twice += 1;
  const ticket = { id: `T-${tickets.size + 1}`, reference, title };
  tickets.set(reference, ticket);
  return ticket;
}

function answer(response, value) {
  const text = JSON.stringify(value);
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

/** From `up`, `hanging` and `refusing` to another one; no connection is kept over the change. */
async function become(next) {
  manner = next;
  for (const socket of sockets) socket.destroy();
  if (next === 'refusing' && server.listening) await new Promise((resolve) => server.close(resolve));
  if (next !== 'refusing' && !server.listening)
    await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
}

server.keepAliveTimeout = 600_000;
server.on('connection', (socket) => {
  sockets.add(socket);
  socket.on('close', () => sockets.delete(socket));
});
server.listen(0, '127.0.0.1', () => {
  port = server.address().port;
  process.send({ port });
});
async function answerParent({ ask, manner: next }) {
  if (next !== undefined) await become(next);
  process.send({ ask, records: tickets.size, twice });
}

process.on('message', (message) => void answerParent(message));
process.on('disconnect', () => process.exit(0));
