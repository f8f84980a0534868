import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { line, readHello, readLine, readWelcome } from '../../src/resident/hello.ts';

const SERVER = { name: 'files', isNamed: false, command: ['node', 'it'], cwd: '/', env: { PATH: '/bin' } };
const HELLO = { version: '1', session: 's', carries: 'client', server: SERVER } as const;

describe('the first line of a connection', () => {
  test('is read, and what comes behind it stays in the stream', async () => {
    const stream = new PassThrough();
    const reading = readLine(stream);
    const text = line(HELLO);
    stream.write(text.slice(0, 10));
    stream.write(`${text.slice(10)}{"jsonrpc":`);
    stream.write('"2.0"}\n');
    stream.end();
    expect(readHello((await reading) ?? '')).toEqual(HELLO);
    const rest: Buffer[] = [];
    for await (const chunk of stream) rest.push(chunk as Buffer);
    expect(Buffer.concat(rest).toString()).toBe('{"jsonrpc":"2.0"}\n');
  });

  test('that never ends is none', async () => {
    const cut = new PassThrough();
    const reading = readLine(cut);
    cut.end('{"version"');
    expect(await reading).toBeUndefined();
    const endless = new PassThrough({ highWaterMark: 64 * 1024 * 1024 });
    const long = readLine(endless);
    endless.write('x'.repeat(9 * 1024 * 1024));
    expect(await long).toBeUndefined();
  });

  test('is acted on only where everything in it can be meant', () => {
    const unclear = { version: '1', carries: 'unclear' };
    const BAD = [
      { ...HELLO, session: '' },
      { ...HELLO, carries: 'else' },
      { ...HELLO, server: undefined },
      { ...HELLO, server: { ...SERVER, command: [] } },
      { ...HELLO, server: { ...SERVER, command: [1] } },
      { ...HELLO, server: { ...SERVER, cwd: '' } },
      { ...HELLO, server: { ...SERVER, env: { PATH: 1 } } },
      { ...HELLO, server: { ...SERVER, config: 7 } },
      { ...HELLO, server: { ...SERVER, isNamed: 'yes' } },
      { ...HELLO, server: { ...SERVER, configDigest: '' } },
      { ...HELLO, server: { ...SERVER, headers: { Authorization: 1 } } },
      { ...HELLO, server: { ...SERVER, headers: null } },
    ];
    for (const bad of BAD) expect(readHello(JSON.stringify(bad))).toEqual(unclear);
    for (const text of ['', 'null', '[]', '{}', '{"version":1}']) expect(readHello(text)).toBeUndefined();
    const reached = { url: 'http://a', headers: { Authorization: 'Bearer x' } };
    const byAddress = { ...HELLO, server: { name: 'a', isNamed: true, ...reached, cwd: '/', env: {} } };
    expect(readHello(JSON.stringify(byAddress))).toEqual(byAddress);
    expect(readWelcome('{"served":true}')).toEqual({ served: true });
    expect(readWelcome('{"served":"yes"}')).toBeUndefined();
  });
});
