import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, describe, expect, test } from 'vitest';
import { line, readLine } from '../../src/resident/hello.ts';
import { type PipeParts, runPipe } from '../../src/resident/pipe.ts';
import { makePlace, residentPlace } from '../../src/resident/place.ts';
import { CleanUps } from '../gateway/processes.ts';

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

/** A pipe in front of whatever listens here; `starts` is the program that a resident would be. */
async function setup(onConnection?: (socket: Socket) => Promise<void> | void, starts = 'process.exit(3)') {
  const place = residentPlace(join(cleanUps.folder(), 'data'));
  expect(makePlace(place)).toBeUndefined();
  if (onConnection !== undefined) {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => {});
      cleanUps.add(() => void socket.destroy());
      void onConnection(socket);
    });
    await new Promise<void>((resolve) => server.listen(place.socket, resolve));
    cleanUps.add(() => void server.close());
  }
  const input = new PassThrough();
  const output = new PassThrough();
  const talk = new PassThrough();
  const parts: PipeParts = {
    place,
    version: '1',
    server: { name: 'it', isNamed: false, command: ['it'], cwd: '/', env: {} },
    start: { command: [process.execPath, '-e', starts], env: {} },
    input,
    output,
    talk,
    patienceMs: 300,
  };
  return { parts, input, output, talk };
}

const textOf = (stream: PassThrough): string => (stream.read() as Buffer | null)?.toString() ?? '';

describe('a pipe', () => {
  test('passes bytes both ways as they are, and ends with its client', async () => {
    const { parts, input, output, talk } = await setup(async (socket) => {
      const hello = JSON.parse((await readLine(socket)) ?? '') as { readonly carries: string };
      socket.write(line({ served: true }));
      if (hello.carries === 'talk') socket.end('for the log\n');
      else socket.on('data', (chunk: Buffer) => socket.write(chunk)).on('end', () => socket.end('last'));
    });
    const bytes = Buffer.from([0, 10, 13, 255, 195, 40]);
    input.end(bytes);
    expect(await runPipe(parts)).toEqual({ ended: 'client' });
    expect(output.read()).toEqual(Buffer.concat([bytes, Buffer.from('last')]));
    expect(textOf(talk)).toBe('for the log\n');
  });

  test('reads nothing of its client before it is served, so that another can serve it', async () => {
    const { parts, input } = await setup((socket) => {
      socket.end(line({ served: false, alone: true, reason: 'it is older' }));
    });
    input.write('the first bytes');
    expect(await runPipe(parts)).toEqual({ ended: 'alone', reason: 'it is older' });
    expect(textOf(input)).toBe('the first bytes');
  });

  test('tells a refusal', async () => {
    const { parts } = await setup((socket) => {
      socket.end(line({ served: false, alone: false, exitCode: 2, sentence: 'It cannot be meant.' }));
    });
    expect(await runPipe(parts)).toEqual({ ended: 'refused', exitCode: 2, sentence: 'It cannot be meant.' });
  });

  test('does not wait for a resident that answers nothing, as one that was stopped', async () => {
    const { parts, input } = await setup(() => {});
    input.write('the first bytes');
    expect(await runPipe(parts)).toEqual({
      ended: 'alone',
      reason: 'the process that serves all clients does not answer',
    });
    expect(textOf(input)).toBe('the first bytes');
  });

  test('tells when the resident is gone in the middle', async () => {
    const { parts } = await setup(async (socket) => {
      const hello = JSON.parse((await readLine(socket)) ?? '') as { readonly carries: string };
      socket.write(line({ served: true }));
      if (hello.carries === 'client') setImmediate(() => socket.destroy());
    });
    expect(await runPipe(parts)).toEqual({ ended: 'resident' });
  });

  const STARTS: readonly (readonly [string, string, object])[] = [
    [
      'cannot be meant',
      `console.log('{"word":"refused","exitCode":2,"sentence":"No."}')`,
      { ended: 'refused', exitCode: 2, sentence: 'No.' },
    ],
    ['is not wanted', `console.log('{"word":"alone"}')`, { ended: 'alone', reason: undefined }],
    [
      'is in the way',
      `console.log('{"word":"obstacle","reason":"it rains"}')`,
      { ended: 'alone', reason: 'it rains' },
    ],
    [
      'ends before it says a word',
      'process.exit(3)',
      {
        ended: 'alone',
        reason: 'the process that serves all clients ended with exit code 3 as it was started',
      },
    ],
    [
      'is another’s, which never listens',
      `console.log('{"word":"taken"}')`,
      {
        ended: 'alone',
        reason: expect.stringMatching(
          /^the process that serves all clients (does not answer|is not ready yet)$/,
        ),
      },
    ],
  ];
  for (const [what, program, end] of STARTS) {
    test(`whose start ${what} says so`, async () => {
      const { parts } = await setup(undefined, program);
      expect(await runPipe({ ...parts, patienceMs: 2_000 })).toEqual(end);
    });
  }

  test('whose resident cannot be started at all says so', async () => {
    const { parts } = await setup();
    const start = { command: [join(parts.place.folder, 'no-such-program')], env: {} };
    expect(await runPipe({ ...parts, start })).toMatchObject({
      ended: 'alone',
      reason: expect.stringMatching(/could not be started: .*ENOENT/),
    });
  });
});
