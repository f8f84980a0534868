// The legs of one call, spoken to without any SDK: a state counts once, for one principal and one request, and what is
// known of a write outlives the process that asked.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { CleanUps, counterfoil, operationsIn, until } from '../processes.ts';
import { type Serving, startServing } from './serving.ts';

const MODERN_SERVER = fileURLToPath(new URL('fixtures/modern-server.mjs', import.meta.url));
const LEGACY_SERVER = fileURLToPath(new URL('fixtures/legacy-server.mjs', import.meta.url));
const cleanUps = new CleanUps();
afterEach(cleanUps.run);

const CONFIG = { tools: { make_asked: { class: 'ordinary', repeat: 'unique' } } };
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
};
const ACCEPTED = { action: 'accept', content: { name: 'Ada' } };

interface Answer {
  readonly result?: {
    readonly resultType?: string;
    readonly requestState?: string;
    readonly inputRequests?: Readonly<Record<string, { readonly method: string }>>;
    readonly content?: readonly { readonly text: string }[];
    readonly isError?: boolean;
  };
  readonly error?: { readonly code: number; readonly message: string };
}

async function call(serving: Serving, tool: string, args: object, more: object = {}): Promise<Answer> {
  const params = { name: tool, arguments: args, _meta: META, ...more };
  const response = await fetch(serving.url(), {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': tool,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
  });
  return (await response.json()) as Answer;
}

/** The answers to whatever was asked. */
const answered = ({ result }: Answer, answer: object = ACCEPTED) => ({
  requestState: result?.requestState,
  inputResponses: Object.fromEntries(Object.keys(result?.inputRequests ?? {}).map((key) => [key, answer])),
});

describe.each([
  ['2026-07-28', MODERN_SERVER],
  ['2025-11-25', LEGACY_SERVER],
] as const)('a write in whose middle a server of %s asks', (_version, file) => {
  async function setup() {
    const folder = cleanUps.folder();
    const logPath = join(folder, 'log');
    const log = (event: string): readonly { readonly state?: string }[] =>
      existsSync(logPath)
        ? readFileSync(logPath, 'utf8')
            .split('\n')
            .slice(0, -1)
            .map((line) => JSON.parse(line) as { readonly event: string; readonly state?: string })
            .filter((entry) => entry.event === event)
        : [];
    const server = { offer: { command: [process.execPath, file, logPath, 'stdio'], config: CONFIG } };
    const data = join(folder, 'data');
    const serving = await startServing(cleanUps, server, { data });
    return { serving, server, data, log };
  }

  test('its state is ours, sealed, and goes to the server as the server gave it', async () => {
    const { serving, log } = await setup();
    const asked = await call(serving, 'make_asked', { title: 'x' });
    expect(asked.result?.resultType).toBe('input_required');
    expect(Object.values(asked.result?.inputRequests ?? {})[0]?.method).toBe('elicitation/create');
    expect(asked.result?.requestState).toMatch(/^cf1\.[\w-]{40,}$/);
    const state = Buffer.from(asked.result?.requestState?.slice(4) ?? '', 'base64url').toString('latin1');
    expect(state).not.toMatch(/op_|conversation|the-state/);
    const [before] = await operationsIn(serving.data);
    expect(before).toMatchObject({ stage: 'sending', effect: 'unknown' });
    const done = await call(serving, 'make_asked', { title: 'x' }, answered(asked));
    expect(done.result?.content?.[0]?.text).toBe('made x for Ada');
    expect(log('made')).toHaveLength(1);
    if (file === MODERN_SERVER) expect(log('asked').at(-1)?.state).toBe('the-state-of-the-server');
    const [operation] = await operationsIn(serving.data);
    expect(operation).toMatchObject({ stage: 'closed', effect: 'accepted', attempts: [{ legs: 2 }] });
    const shown = await counterfoil(['show', operation?.id ?? '', '--data', serving.data]);
    expect(shown.stdout).toContain('the destination asked back: leg 2 recorded, before the answer was sent');
  });

  test('a state counts once, for its own request, and not when it was changed', async () => {
    const { serving, log } = await setup();
    const asked = await call(serving, 'make_asked', { title: 'x' });
    const given = answered(asked);
    const state = given.requestState ?? '';
    const forged = `${state.slice(0, -2)}${state.endsWith('AA') ? 'BB' : 'AA'}`;
    for (const [args, more] of [
      [{ title: 'y' }, given],
      [{ title: 'x' }, { ...given, requestState: forged }],
      [{ title: 'x' }, { ...given, requestState: 'cf1.' }],
    ] as const) {
      const refused = await call(serving, 'make_asked', args, more);
      expect(refused.error).toMatchObject({ code: -32602 });
    }
    expect(log('made')).toHaveLength(0);
    expect((await call(serving, 'make_asked', { title: 'x' }, given)).result?.isError).toBeUndefined();
    const again = await call(serving, 'make_asked', { title: 'x' }, given);
    expect(again.result?.content?.[0]?.text).toMatch(/^ACCEPTED, NOT CHECKED \(op_/);
    expect(log('made')).toHaveLength(1);
  });

  test('an equal call, while the question is open, is asked the same question', async () => {
    const { serving, log } = await setup();
    const asked = await call(serving, 'make_asked', { title: 'x' });
    const again = await call(serving, 'make_asked', { title: 'x' });
    expect(again.result?.inputRequests).toEqual(asked.result?.inputRequests);
    expect(await operationsIn(serving.data)).toHaveLength(1);
    const done = await call(serving, 'make_asked', { title: 'x' }, answered(again));
    expect(done.result?.content?.[0]?.text).toBe('made x for Ada');
    expect(log('made')).toHaveLength(1);
    // The first question was the same, and has been answered.
    const late = await call(serving, 'make_asked', { title: 'x' }, answered(asked));
    expect(late.result?.content?.[0]?.text).toMatch(/op_/);
    expect(log('made')).toHaveLength(1);
  });

  test('an equal call that brings the answer to the open question needs no state', async () => {
    const { serving, log } = await setup();
    const asked = await call(serving, 'make_asked', { title: 'x' });
    const { inputResponses } = answered(asked);
    const other = await call(serving, 'make_asked', { title: 'x' }, { inputResponses: { other: ACCEPTED } });
    expect(other.result?.inputRequests).toEqual(asked.result?.inputRequests);
    const more = { inputResponses: { ...inputResponses, other: ACCEPTED } };
    const done = await call(serving, 'make_asked', { title: 'x' }, more);
    expect(done.result?.content?.[0]?.text).toBe('made x for Ada');
    // The question has been answered: a state that was given for it counts no more.
    const late = await call(serving, 'make_asked', { title: 'x' }, answered(asked));
    expect(late.result?.content?.[0]?.text).toMatch(/op_/);
    expect(log('made')).toHaveLength(1);
    const [operation, ...others] = await operationsIn(serving.data);
    expect(operation).toMatchObject({ stage: 'closed', effect: 'accepted', attempts: [{ legs: 2 }] });
    expect(others).toEqual([]);
  });

  test('of two clients with one state one is heard', async () => {
    const { serving, log } = await setup();
    const asked = await call(serving, 'make_asked', { title: 'x' });
    const both = await Promise.all(
      [1, 2].map(() => call(serving, 'make_asked', { title: 'x' }, answered(asked))),
    );
    const texts = both.map(({ result }) => result?.content?.[0]?.text ?? '').toSorted();
    expect(texts[0]).toMatch(/op_/);
    expect(texts[1]).toBe('made x for Ada');
    expect(log('made')).toHaveLength(1);
  });

  test('an answer that leaves something out is asked for it again', async () => {
    const { serving, log } = await setup();
    const asked = await call(serving, 'make_asked', { title: 'x' });
    const more = { requestState: asked.result?.requestState, inputResponses: { other: ACCEPTED } };
    const again = await call(serving, 'make_asked', { title: 'x' }, more);
    expect(again.result?.resultType).toBe('input_required');
    expect(again.result?.requestState).not.toBe(asked.result?.requestState);
    const done = await call(serving, 'make_asked', { title: 'x' }, answered(again));
    expect(done.result?.content?.[0]?.text).toBe('made x for Ada');
    expect(log('made')).toHaveLength(1);
  });

  test('a person who declines is heard by the server, and the write is what it says', async () => {
    const { serving, log } = await setup();
    const asked = await call(serving, 'make_asked', { title: 'x' });
    const done = await call(serving, 'make_asked', { title: 'x' }, answered(asked, { action: 'decline' }));
    expect(done.result?.isError).toBe(true);
    expect(log('made')).toHaveLength(0);
    const [operation] = await operationsIn(serving.data);
    expect(operation).toMatchObject({ stage: 'closed', effect: 'error_reported' });
  });

  test('a client without elicitation is not asked', async () => {
    const { serving, log } = await setup();
    const meta = { ...META, 'io.modelcontextprotocol/clientCapabilities': {} };
    const refused = await call(serving, 'make_asked', { title: 'x' }, { _meta: meta });
    expect(refused.result?.resultType).not.toBe('input_required');
    expect(log('made')).toHaveLength(0);
  });

  test('told to end while a question is open, it ends, and says that the outcome is unknown', async () => {
    const { serving, log } = await setup();
    await call(serving, 'make_asked', { title: 'x' });
    serving.process.kill('SIGTERM');
    // A server that was asked by a request is given its time to answer; the second signal does not wait for it.
    serving.process.kill('SIGINT');
    expect(await serving.process.exited).toEqual({ code: 0, signal: null });
    const [operation] = await operationsIn(serving.data);
    expect(operation).toMatchObject({ effect: 'unknown', attempts: [{ open: false }] });
    expect(log('made')).toHaveLength(0);
  });

  test('when the process that asked is gone, its state tells what is known of the write', async () => {
    const { serving, server, data, log } = await setup();
    const asked = await call(serving, 'make_asked', { title: 'x' });
    serving.process.kill('SIGKILL');
    await serving.process.died;
    const next = await startServing(cleanUps, server, { data });
    await until(() => next.port > 0, 'the next process to listen');
    const told = await call(next, 'make_asked', { title: 'x' }, answered(asked));
    expect(told.result?.content?.[0]?.text).toMatch(/^(OUTCOME UNKNOWN|SENT, NO ANSWER YET) — .*op_/);
    expect(log('made')).toHaveLength(0);
  });
});

test('a call that brings the answer before it is asked is one attempt of two legs', async () => {
  const logPath = join(cleanUps.folder(), 'log');
  const command = [process.execPath, MODERN_SERVER, logPath, 'stdio'];
  const serving = await startServing(cleanUps, { offer: { command, config: CONFIG } });
  const done = await call(serving, 'make_asked', { title: 'x' }, { inputResponses: { name: ACCEPTED } });
  expect(done.result?.content?.[0]?.text).toBe('made x for Ada');
  const events = readFileSync(logPath, 'utf8').match(/"event":"\w+"/g);
  expect(events).toEqual(['started', 'asked', 'asked', 'made'].map((event) => `"event":"${event}"`));
  const [operation] = await operationsIn(serving.data);
  expect(operation).toMatchObject({ stage: 'closed', effect: 'accepted', attempts: [{ legs: 2 }] });
  // What cannot be an answer is not made one: it is for the server to judge, and nothing is asked twice by itself.
  const asked = await call(serving, 'make_asked', { title: 'y' }, { inputResponses: null });
  expect(asked.result?.resultType).toBe('input_required');
});
