// The client's end: finds the resident process or starts it, and then lets the bytes pass, unread.
//
// Every client that a person has open has one of these, so that nothing heavy may be loaded here.

import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { parse } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as pass } from 'node:timers/promises';
import {
  type FirstWord,
  type Hello,
  line,
  readFirstWord,
  readLine,
  readWelcome,
  type ServerSpec,
  type Welcome,
} from './hello.ts';
import { findPlaceObstacle, type ResidentPlace } from './place.ts';

export interface PipeParts {
  readonly place: ResidentPlace;
  readonly version: string;
  readonly server: ServerSpec;
  /** Starts the resident: a program and its arguments, with an environment of their own. */
  readonly start: { readonly command: readonly string[]; readonly env: { readonly [name: string]: string } };
  readonly input: Readable;
  readonly output: Writable;
  /** What the client's log shows. */
  readonly talk: Writable;
  /** How long a resident may take to start and to answer, in milliseconds; 15,000 when absent. */
  readonly patienceMs?: number;
}

export type PipeEnd =
  /** The client has closed its end, and everything that it had called is answered. */
  | { readonly ended: 'client' }
  /** The client reads no more. */
  | { readonly ended: 'client_gone' }
  /** The resident ended, or was killed, while the client was there. */
  | { readonly ended: 'resident' }
  /** The resident refuses: in words for the person who has set it up. */
  | { readonly ended: 'refused'; readonly exitCode: number; readonly sentence: string }
  /** Nothing has passed, and the client is to be served without a resident; the end of a sentence says why. */
  | { readonly ended: 'alone'; readonly reason: string | undefined };

/** Starting the resident takes half a second; a machine that has just woken up takes its time. */
const PATIENCE_MS = 15_000;
const RETRY_MS = 25;
const LAST_WORDS_MS = 2_000;

export async function runPipe(parts: PipeParts): Promise<PipeEnd> {
  const obstacle = findPlaceObstacle(parts.place);
  if (obstacle !== undefined) return { ended: 'alone', reason: obstacle };
  const met = await meet(parts);
  if ('ended' in met) return met;
  return passBytes(parts, met);
}

interface Met {
  readonly client: Socket;
  readonly talk: Socket;
}

/** A resident that ends as we come is no reason to fail: nothing has passed yet, and the next one is started. */
async function meet(parts: PipeParts): Promise<Met | PipeEnd> {
  const deadline = performance.now() + (parts.patienceMs ?? PATIENCE_MS);
  const session = randomBytes(16).toString('hex');
  const { version, server } = parts;
  for (;;) {
    const talk = await greet(parts.place, { version, session, carries: 'talk' }, deadline);
    const client =
      talk.welcome?.served === true
        ? await greet(parts.place, { version, session, carries: 'client', server }, deadline)
        : talk;
    const { welcome } = client;
    if (talk.socket !== undefined && client.socket !== undefined && welcome?.served === true) {
      return { client: client.socket, talk: talk.socket };
    }
    talk.socket?.destroy();
    client.socket?.destroy();
    if (welcome?.served === false) {
      if (welcome.alone) return { ended: 'alone', reason: welcome.reason };
      return { ended: 'refused', exitCode: welcome.exitCode, sentence: welcome.sentence };
    }
    if (performance.now() > deadline) {
      return { ended: 'alone', reason: 'the process that serves all clients does not answer' };
    }
    const end =
      talk.socket === undefined ? await startResident(parts, deadline) : await pass(RETRY_MS, undefined);
    if (end !== undefined) return end;
  }
}

interface Greeted {
  /** Absent where nobody listens. */
  readonly socket?: Socket;
  /** Absent where it was cut before it answered. */
  readonly welcome?: Welcome | undefined;
}

/** A process that was stopped still has its socket, and answers nothing. */
async function greet(place: ResidentPlace, hello: Hello, deadline: number): Promise<Greeted> {
  const socket = await connected(place.socket);
  if (socket === undefined) return {};
  socket.on('error', () => {});
  socket.write(line(hello));
  const isOver = setTimeout(() => socket.destroy(), Math.max(0, deadline - performance.now()));
  const text = await readLine(socket);
  clearTimeout(isOver);
  return { socket, welcome: text === undefined ? undefined : readWelcome(text) };
}

/** A file that a killed resident has left refuses; where there is none, nobody has been started yet. */
function connected(path: string): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ path, allowHalfOpen: true });
    socket.once('error', () => resolve(undefined));
    socket.once('connect', () => resolve(socket));
  });
}

/** Two clients may do this at once: the second resident finds the lock taken and ends. */
async function startResident(parts: PipeParts, deadline: number): Promise<PipeEnd | undefined> {
  const { command, env } = parts.start;
  const [program = '', ...args] = command;
  const child = spawn(program, args, {
    detached: true,
    // Not the client's folder, which may be on a disk that somebody wants to take out.
    cwd: parse(program).root,
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
    windowsHide: true,
  });
  const late: FirstWord = {
    word: 'obstacle',
    reason: 'the process that serves all clients is not ready yet',
  };
  const first = await Promise.race([
    firstWord(child),
    pass(deadline - performance.now(), late, { ref: false }),
  ]);
  child.stdout?.destroy();
  child.unref();
  switch (first.word) {
    case 'listening':
      return undefined;
    case 'taken':
      await pass(RETRY_MS);
      return undefined;
    case 'refused':
      return { ended: 'refused', exitCode: first.exitCode, sentence: first.sentence };
    case 'alone':
      return { ended: 'alone', reason: undefined };
    case 'obstacle':
      return { ended: 'alone', reason: first.reason };
  }
}

function firstWord(child: ChildProcess): Promise<FirstWord> {
  return new Promise((resolve) => {
    const obstacle = (reason: string): void => resolve({ word: 'obstacle', reason });
    child.once('error', (cause) =>
      obstacle(`the process that serves all clients could not be started: ${cause.message}`),
    );
    let text = '';
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      const end = text.indexOf('\n');
      const first = end === -1 ? undefined : readFirstWord(text.slice(0, end));
      if (first !== undefined) resolve(first);
    });
    child.once('close', (code, signal) =>
      obstacle(
        `the process that serves all clients ended with ${signal ?? `exit code ${code}`} as it was started`,
      ),
    );
  });
}

function passBytes({ input, output, talk }: PipeParts, met: Met): Promise<PipeEnd> {
  return new Promise((resolve) => {
    let hasClientEnded = false;
    let hasFinished = false;
    const finish = (end: PipeEnd): void => {
      if (hasFinished) return;
      hasFinished = true;
      input.unpipe(met.client);
      input.destroy();
      met.client.destroy();
      if (end.ended === 'client_gone') met.talk.destroy();
      // What was answered and said last may still be under way; a client that reads nothing is not waited for.
      const isOver = pass(LAST_WORDS_MS);
      const isSaid = new Promise((said) => {
        if (met.talk.readableEnded || met.talk.closed) said(true);
        for (const event of ['end', 'close'] as const) met.talk.once(event, said);
      });
      const isWritten = new Promise((written) => output.write('', written));
      void Promise.race([Promise.all([isSaid, isWritten]), isOver]).then(() => {
        met.talk.destroy();
        resolve(end);
      });
    };
    input.on('end', () => {
      hasClientEnded = true;
    });
    // The resident must learn that nobody reads: only then is an answer told again to the next equal call.
    output.on('error', () => finish({ ended: 'client_gone' }));
    met.client.on('end', () => finish({ ended: hasClientEnded ? 'client' : 'resident' }));
    met.client.on('close', () => finish({ ended: hasClientEnded ? 'client' : 'resident' }));
    met.talk.pipe(talk, { end: false });
    met.client.pipe(output, { end: false });
    input.pipe(met.client);
  });
}
