import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import fc from 'fast-check';
import { afterEach, expect, test } from 'vitest';
import { frozen, openAt, sendRequest, TIMEOUTS } from './http-fixture.ts';

const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.close();
    await once(server, 'close');
  }
});

/** A server that says these parts to whatever it is asked, and then ends, breaks off or says nothing more. */
async function saying(parts: readonly Buffer[], end: 'end' | 'reset' | 'hang'): Promise<string> {
  const server = createServer((socket: Socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      void (async () => {
        for (const part of parts) {
          socket.write(part);
          await pause(1);
        }
        if (end === 'end') socket.end();
        else if (end === 'reset') socket.resetAndDestroy();
      })();
    });
  });
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as { readonly port: number }).port}`;
}

const status = fc.constantFrom(
  'HTTP/1.1 201 Created\r\n',
  'HTTP/1.1 200 OK\r\n',
  'HTTP/1.0 200 OK\r\n',
  'HTTP/1.1 100 Continue\r\n\r\n',
  'HTTP/1.1 204 No Content\r\n',
  'HTTP/1.1 302 Found\r\n',
  'HTTP/1.1 503 Unavailable\r\n',
  'HTTP/1.1 999 Odd\r\n',
  'HTTP/2 200\r\n',
  '',
);
const header = fc.constantFrom(
  'content-length: 2\r\n',
  'content-length: 99999999999\r\n',
  'content-length: -1\r\n',
  'transfer-encoding: chunked\r\n',
  'content-encoding: gzip\r\n',
  'content-encoding: gzip, br, gzip\r\n',
  'content-type: application/json\r\n',
  'content-type: text/html\r\n',
  'location: ///\r\n',
  'retry-after: 99999999999999999999\r\n',
  'set-cookie: a=b\r\nset-cookie: c=d\r\n',
  'odd header\r\n',
);
const body = fc.constantFrom(
  '{}',
  '{"id":"T-1"}',
  'null',
  '',
  '<html>',
  '5\r\n{"id"\r\n0\r\n\r\n',
  '\u0000\u0001',
);
const answer = fc
  .tuple(status, fc.array(header, { maxLength: 2 }), body)
  .map(([first, headers, rest]) => Buffer.from(`${first}${headers.join('')}\r\n${rest}`));
const noise = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes));
const part = fc.oneof({ weight: 6, arbitrary: answer }, { weight: 1, arbitrary: noise });
const ends = fc.constantFrom('end', 'reset', 'hang' as const);

test('whatever a server says, a write that was read by it is never "not sent", and nothing throws', async () => {
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(fc.array(part, { maxLength: 2 }), ends, async (parts, end) => {
      const destination = openAt(await saying(parts, end), {
        timeouts: { ...TIMEOUTS, lateMs: 10 },
        replyMaxBytes: 4_096,
      });
      const report = await destination.send(sendRequest(frozen('a'), { replyTimeoutMs: 150 }));
      const asked = await destination.ask({ tool: 'q', payload: '{"path":["t"]}', timeoutMs: 150 });
      await destination.close();
      expect(report.left).toBe('maybe');
      if (report.left !== 'maybe') return;
      seen.add(`${report.ended} ${report.reply?.kind ?? ''} ${report.reply?.doubt ?? ''}`);
      expect(report.ended === 'reply').toBe(report.reply !== undefined);
      // What is taken for an acknowledgement is JSON of a whole success.
      if (report.reply?.kind === 'result' && report.reply.doubt === undefined) {
        expect(report.reply.code).toBeLessThan(300);
        JSON.parse(report.reply.body);
      }
      if (asked.answered) JSON.parse(asked.reply.body);
    }),
    { numRuns: 60, seed: 20_261_130 },
  );
  // The noise has reached every way of ending.
  expect([...seen].some((one) => one.startsWith('reply result '))).toBe(true);
  expect([...seen].some((one) => one.startsWith('cut'))).toBe(true);
  expect([...seen].some((one) => one.startsWith('unreadable'))).toBe(true);
  expect([...seen].some((one) => one.startsWith('timeout'))).toBe(true);
}, 90_000);
