// Stands where the gateway stands and passes bytes, or damages them in one way: the control that shows that the
// runner sees damage, and that it sees none where there is none.
//
//   none                 everything passes
//   drop-meta            requests arrive without their _meta
//   drop-notifications   what a server says before its answer does not arrive
//   flatten-status       every HTTP status of an error becomes 200
//   any-host             requests that name another host arrive as if they named this one

import { request as ask, createServer } from 'node:http';

export const DAMAGES = ['none', 'drop-meta', 'drop-notifications', 'flatten-status', 'any-host'];

/**
 * @param {string} upstream the address that it stands in front of
 * @param {string} damage one of `DAMAGES`
 * @returns {Promise<{ url: string, damaged: number, close(): Promise<void> }>} `damaged`: how often it did
 */
export async function startDamagingProxy(upstream, damage) {
  const proxy = { damaged: 0 };
  const count = () => {
    proxy.damaged += 1;
  };
  const target = new URL(upstream);
  const server = createServer((request, response) => {
    pass({ request, response, target, damage, count }).catch(() => response.destroy());
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  proxy.url = `http://127.0.0.1:${server.address().port}${target.pathname}`;
  proxy.close = () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return proxy;
}

async function pass({ request, response, target, damage, count }) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = damagedRequest(Buffer.concat(chunks), damage, count);
  const headers = { ...request.headers };
  // What named this server names the next one; what named another goes on as it is, and is refused there.
  if (headers.host === `127.0.0.1:${request.socket.localPort}`) {
    headers.host = target.host;
    if (headers.origin !== undefined) headers.origin = target.origin;
  } else if (damage === 'any-host') {
    count();
    headers.host = target.host;
    delete headers.origin;
  }
  if (body.length > 0) headers['content-length'] = String(body.length);
  const { hostname, port, pathname } = target;
  const onward = ask({ hostname, port, path: pathname, method: request.method, headers });
  response.once('close', () => onward.destroy());
  onward.once('error', () => response.destroy());
  onward.once('response', (answer) => {
    const isError = answer.statusCode >= 400;
    if (damage === 'flatten-status' && isError) count();
    const status = damage === 'flatten-status' && isError ? 200 : answer.statusCode;
    const isStream = answer.headers['content-type']?.startsWith('text/event-stream') === true;
    response.writeHead(status, answer.headers);
    response.flushHeaders();
    if (damage === 'drop-notifications' && isStream) dropNotifications(answer, response, count);
    else answer.pipe(response);
  });
  onward.end(body);
}

function damagedRequest(body, damage, count) {
  if (damage !== 'drop-meta' || body.length === 0) return body;
  const message = JSON.parse(body.toString('utf8'));
  if (message.params?._meta === undefined) return body;
  count();
  delete message.params._meta;
  return Buffer.from(JSON.stringify(message));
}

function dropNotifications(answer, response, count) {
  let rest = '';
  answer.setEncoding('utf8').on('data', (chunk) => {
    const events = (rest + chunk).split('\n\n');
    rest = events.pop();
    for (const event of events) {
      if (/"method":"notifications\//.test(event)) count();
      else response.write(`${event}\n\n`);
    }
  });
  answer.once('end', () => response.end(rest));
}
