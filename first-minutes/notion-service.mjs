// In the place of Notion's service, on loopback: what Notion's own server reads from it, and nothing that it may write.

import { once } from 'node:events';
import { createServer } from 'node:http';

const PERSON = { object: 'user', id: '6a5d0f0e-0000-4000-8000-000000000001', type: 'person', name: 'Ada' };
const list = (results) => ({ object: 'list', results, next_cursor: null, has_more: false });
const ANSWERS = {
  'GET /v1/users/me': PERSON,
  'GET /v1/users': list([PERSON]),
  'POST /v1/search': list([]),
};

/** @returns {Promise<{ url: string, asked: string[], close: () => void }>} `asked`: each request that came */
export async function notionService() {
  const asked = [];
  const server = createServer((request, response) => {
    const what = `${request.method} ${new URL(request.url, 'http://localhost').pathname}`;
    asked.push(what);
    const answer = ANSWERS[what];
    response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer ?? { object: 'error', status: 404, code: 'object_not_found' }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    asked,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
