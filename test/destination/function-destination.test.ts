import { describe, expect, test } from 'vitest';
import {
  DestinationError,
  functionDestination,
  type ToolContext,
  type ToolFunction,
} from '../../src/destination/function-destination.ts';
import type { LateReply, SendRequest } from '../../src/destination/port.ts';
import { type DestinationFault, exerciseDestination } from '../../src/testing/exercise-destination.ts';

function request(overrides: Partial<SendRequest> = {}): SendRequest {
  return {
    operation: 'op_1',
    attempt: 'at_1',
    tool: 'act',
    payload: '{"title":"a"}',
    replyTimeoutMs: 10_000,
    mayLeave: () => true,
    ...overrides,
  };
}

function withTool(act: ToolFunction, more: { readonly replyMaxBytes?: number } = {}) {
  return functionDestination({ name: 'crm', tools: { act }, ...more });
}

/** A value that is given later, by the test. */
function deferred<Value>() {
  let resolve!: (value: Value) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<Value>((fulfil, fail) => {
    resolve = fulfil;
    reject = fail;
  });
  return { promise, resolve, reject };
}

describe('a destination made of functions passes the conformance suite', () => {
  const faults: DestinationFault[] = [
    'none',
    'tool_error',
    'unreachable',
    'cut_before_record',
    'cut_after_record',
    'silent',
    'held',
    'unreadable',
  ];
  const start = async (fault: DestinationFault) => {
    let records = 0;
    const held: (() => void)[] = [];
    const act = async (args: { mark: string }, context: ToolContext): Promise<unknown> => {
      if (fault === 'unreachable') throw context.notSent('connection refused');
      if (fault === 'cut_before_record') throw new Error('reset');
      records++;
      const answer = { mark: args.mark };
      if (fault === 'cut_after_record') throw new Error('reset');
      if (fault === 'tool_error') throw new DestinationError(answer);
      if (fault === 'unreadable') return { id: 10n };
      if (fault === 'silent') return new Promise(() => {});
      if (fault === 'held') await new Promise<void>((resolve) => held.push(resolve));
      return answer;
    };
    return {
      destination: functionDestination({ name: 'crm', tools: { act }, asks: { find: () => [] } }),
      tool: 'act',
      payload: (mark: string) => JSON.stringify({ mark }),
      question: { tool: 'find', payload: '{}' },
      countRecords: async () => records,
      release: async () => {
        for (const go of held) go();
      },
      stop: async () => {},
    };
  };
  for (const { name, run } of exerciseDestination({ faults, start })) test(name, run);
});

describe('send', () => {
  test('gives the function the parsed arguments and the exact payload', async () => {
    const seen: unknown[] = [];
    const destination = withTool((args, { operation, attempt, payload }) => {
      seen.push({ args, operation, attempt, payload });
      return { id: 7 };
    });
    const report = await destination.send(request());
    expect(seen).toEqual([
      { args: { title: 'a' }, operation: 'op_1', attempt: 'at_1', payload: '{"title":"a"}' },
    ]);
    expect(report).toMatchObject({
      left: 'maybe',
      ended: 'reply',
      reply: { kind: 'result', body: '{"id":7}' },
    });
  });

  test('asks mayLeave last, in the turn in which the function is entered', async () => {
    const order: string[] = [];
    const destination = withTool(() => order.push('entered'));
    const sending = destination.send(
      request({
        mayLeave: () => {
          queueMicrotask(() => order.push('next turn'));
          order.push('asked');
          return true;
        },
      }),
    );
    await sending;
    expect(order).toEqual(['asked', 'entered', 'next turn']);
  });

  test('a function that is not given, or arguments that are not JSON, are refused unasked', async () => {
    let asked = 0;
    const mayLeave = () => {
      asked++;
      return true;
    };
    const destination = withTool(() => null);
    for (const wrong of [{ tool: 'constructor' }, { tool: 'absent' }, { payload: '{' }]) {
      const report = await destination.send(request({ ...wrong, mayLeave }));
      expect(report).toMatchObject({ left: 'no', proof: 'refused_by_sender' });
    }
    expect(asked).toBe(0);
  });

  test('a check that throws lets nothing leave', async () => {
    let entered = 0;
    const destination = withTool(() => entered++);
    const mayLeave = () => {
      throw new Error('broken');
    };
    expect(await destination.send(request({ mayLeave }))).toMatchObject({ left: 'no' });
    expect(entered).toBe(0);
  });

  test.each([
    [
      'throws at once',
      () => {
        throw new Error('boom');
      },
    ],
    ['rejects', () => Promise.reject(new Error('boom'))],
    [
      'throws no error',
      () => {
        throw undefined;
      },
    ],
  ])('a function that %s may have sent', async (_, act) => {
    expect(await withTool(act).send(request())).toMatchObject({ left: 'maybe', ended: 'cut' });
  });

  test('the word that nothing left counts only for the call that it was given for, and only when thrown', async () => {
    let kept: Error | undefined;
    const destination = withTool((_, context) => {
      if (kept !== undefined) throw kept;
      kept = context.notSent('connection refused');
      throw kept;
    });
    expect(await destination.send(request())).toEqual({
      left: 'no',
      proof: 'vouched_by_author',
      detail: 'connection refused',
    });
    expect(await destination.send(request())).toMatchObject({ left: 'maybe', ended: 'cut' });
    const unthrown = withTool((_, context) => context.notSent('returned'));
    expect(await unthrown.send(request())).toMatchObject({ left: 'maybe', ended: 'reply' });
  });

  test('an error answer keeps its body and its code', async () => {
    const destination = withTool(() => {
      throw new DestinationError({ reason: 'locked' }, { code: 423 });
    });
    const report = await destination.send(request());
    expect(report).toMatchObject({ reply: { kind: 'tool_error', body: '{"reason":"locked"}', code: 423 } });
  });

  test('nothing returned is the answer null', async () => {
    expect(await withTool(() => {}).send(request())).toMatchObject({
      reply: { kind: 'result', body: 'null' },
    });
  });

  test('a body over the cap is cut at a character and says so', async () => {
    const report = await withTool(() => 'éééé', { replyMaxBytes: 4 }).send(request());
    expect(report).toMatchObject({ reply: { body: '"é', truncated: true } });
  });

  test('what comes after the time-out is late: an answer, or an error answer, or nothing', async () => {
    const late: LateReply[] = [];
    const answers = [deferred(), deferred(), deferred()];
    let calls = 0;
    const destination = withTool(() => answers[calls++]?.promise);
    destination.onLateReply = (reply) => late.push(reply);
    const attempts = answers.map((_, index) => request({ attempt: `at_${index}`, replyTimeoutMs: 5 }));
    for (const report of await Promise.all(attempts.map((attempt) => destination.send(attempt)))) {
      expect(report).toMatchObject({ left: 'maybe', ended: 'timeout' });
    }
    answers[0]?.resolve({ id: 1 });
    answers[1]?.reject(new DestinationError('no'));
    answers[2]?.reject(new Error('reset'));
    await Promise.allSettled(answers.map(({ promise }) => promise));
    await Promise.resolve();
    expect(late).toEqual([
      { operation: 'op_1', attempt: 'at_0', reply: { kind: 'result', body: '{"id":1}' } },
      { operation: 'op_1', attempt: 'at_1', reply: { kind: 'tool_error', body: '"no"' } },
    ]);
  });

  test('the signal aborts at close, also for a call that has timed out, and not at the time-out', async () => {
    const signals: AbortSignal[] = [];
    const destination = withTool((_, context) => {
      signals.push(context.signal);
      return new Promise(() => {});
    });
    await destination.send(request({ replyTimeoutMs: 5 }));
    expect(signals[0]?.aborted).toBe(false);
    const sending = destination.send(request());
    await destination.close();
    expect(await sending).toMatchObject({ left: 'maybe', ended: 'aborted' });
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  });
});

describe('ask', () => {
  test('ends at its time-out and aborts the question', async () => {
    let signal: AbortSignal | undefined;
    const destination = functionDestination({
      name: 'crm',
      tools: {},
      asks: {
        find: (_, context) => {
          signal = context.signal;
          return new Promise(() => {});
        },
      },
    });
    const report = await destination.ask({ tool: 'find', payload: '{}', timeoutMs: 5 });
    expect(report).toMatchObject({ answered: false });
    expect(signal?.aborted).toBe(true);
  });

  test('a question that throws is not answered, an error answer is', async () => {
    const destination = functionDestination({
      name: 'crm',
      tools: { write: () => 1 },
      asks: {
        broken: () => {
          throw new Error('boom');
        },
        refused: () => {
          throw new DestinationError('forbidden', { code: 403 });
        },
      },
    });
    const ask = (tool: string) => destination.ask({ tool, payload: '{}', timeoutMs: 1000 });
    expect(await ask('broken')).toMatchObject({ answered: false });
    expect(await ask('refused')).toMatchObject({ answered: true, reply: { kind: 'tool_error', code: 403 } });
    // A write is never run as a question.
    expect(await ask('write')).toMatchObject({ answered: false });
  });
});
