// The conformance suite of the destination port: the phase rules of D8, checked against a destination that counts.
//
// Each case starts a destination with one fault, sends through the adapter, closes it, and counts what was
// recorded. The rule that all of them check: `left: 'no'` was said, so nothing was recorded.

import { strict as assert } from 'node:assert';
import type { Destination, LateReply, SendReport, SendRequest } from '../destination/port.ts';

/**
 * What the destination does with a write. `unreachable`: there is nothing to connect to. `cut_*`: the
 * connection ends before, or after, the write is recorded. `silent`: recorded, never answered. `held`: recorded,
 * answered at
 * `release`; only for an adapter that gives late replies. `unreadable`: recorded, answered with what is no reply.
 */
export type DestinationFault =
  | 'none'
  | 'tool_error'
  | 'protocol_error'
  | 'unreachable'
  | 'cut_before_record'
  | 'cut_after_record'
  | 'silent'
  | 'held'
  | 'unreadable';

export interface DestinationUnderTest {
  /** Not connected yet. */
  readonly destination: Destination;
  /** A tool that writes, and arguments for it; the reply to them must hold the mark. */
  readonly tool: string;
  payload(mark: string): string;
  /** A read-only question that the destination answers. */
  readonly question: { readonly tool: string; readonly payload: string };
  /** How many writes the destination itself has recorded. Asked after `close`, when nothing more can arrive. */
  countRecords(): Promise<number>;
  /** Lets held answers go. */
  release(): Promise<void>;
  /** Ends the destination itself. */
  stop(): Promise<void>;
}

export interface DestinationHarness {
  /** The faults that this destination can be given; cases for others are left out. */
  readonly faults: readonly DestinationFault[];
  start(fault: DestinationFault): Promise<DestinationUnderTest>;
}

export interface DestinationCase {
  readonly name: string;
  /** Rejects with an `AssertionError` when the adapter breaks the rule. */
  run(): Promise<void>;
}

/** Long enough for a busy machine; a case that passes does not wait for it. */
const PLENTY_MS = 20_000;
/** For cases in which the time-out is what happens. */
const SHORT_MS = 100;

/** The cases, for any test runner: `for (const { name, run } of exerciseDestination(harness)) test(name, run)`. */
export function exerciseDestination(harness: DestinationHarness): readonly DestinationCase[] {
  const cases = [...faultCases(), ...wayCases()];
  return cases
    .filter(({ fault }) => harness.faults.includes(fault))
    .map(({ name, fault, check }) => ({ name, run: () => runCase(harness, fault, check) }));
}

interface Case {
  readonly name: string;
  readonly fault: DestinationFault;
  readonly check: (bench: Bench) => Promise<void>;
}

async function runCase(
  harness: DestinationHarness,
  fault: DestinationFault,
  check: Case['check'],
): Promise<void> {
  const under = await harness.start(fault);
  try {
    await check(new Bench(under));
  } finally {
    await under.destination.close();
    await under.stop();
  }
}

interface Sent {
  readonly report: SendReport;
  /** How often `mayLeave` was asked. */
  readonly asked: number;
}

/** One destination under test, with the requests that were made of it. */
class Bench {
  readonly under: DestinationUnderTest;
  readonly destination: Destination;
  readonly late: LateReply[] = [];
  #lateWaiters: (() => void)[] = [];
  #sendCount = 0;

  constructor(under: DestinationUnderTest) {
    this.under = under;
    this.destination = under.destination;
    this.destination.onLateReply = (late) => {
      this.late.push(late);
      for (const tell of this.#lateWaiters) tell();
    };
  }

  send(overrides: Partial<SendRequest> = {}): Promise<Sent> {
    return this.begin(overrides).sending;
  }

  /** Sends one write. `handedOver` resolves behind the turn in which `mayLeave` was asked. */
  begin(overrides: Partial<SendRequest> = {}): { sending: Promise<Sent>; handedOver: Promise<void> } {
    let tell = () => {};
    const handedOver = new Promise<void>((resolve) => {
      tell = resolve;
    });
    return { sending: this.#send(overrides, tell), handedOver };
  }

  /** Asserts what holds for every report. */
  async #send(overrides: Partial<SendRequest>, onAsked: () => void): Promise<Sent> {
    this.#sendCount++;
    const mark = `mark-${this.#sendCount}`;
    let asked = 0;
    const report = await this.destination.send({
      operation: `op-${this.#sendCount}`,
      attempt: `at-${this.#sendCount}`,
      tool: this.under.tool,
      payload: this.under.payload(mark),
      replyTimeoutMs: PLENTY_MS,
      ...overrides,
      mayLeave: () => {
        asked++;
        onAsked();
        return overrides.mayLeave?.() ?? true;
      },
    });
    if (report.left === 'maybe') {
      assert.equal(asked, 1, 'mayLeave is asked one time, before anything leaves');
      assert.equal(
        report.ended === 'reply',
        report.reply !== undefined,
        'a reply is given when the wait ended in one',
      );
      if (report.reply?.kind === 'result')
        assert.ok(report.reply.body.includes(mark), 'the reply is of this request');
    } else {
      assert.ok(asked <= 1, 'mayLeave is asked at most once');
      assert.ok(report.proof.length > 0 && report.detail.length > 0, 'a proof is named and described');
    }
    return { report, asked };
  }

  async connect(): Promise<void> {
    const report = await this.destination.connect();
    assert.deepEqual(report, { connected: true });
    assert.equal(this.destination.isConnected(), true);
  }

  lateReply(): Promise<void> {
    return this.late.length > 0
      ? Promise.resolve()
      : new Promise((resolve) => this.#lateWaiters.push(resolve));
  }

  /** Closes first, so that nothing can be under way when the records are counted. */
  async assertRecords(expected: number): Promise<void> {
    await this.destination.close();
    assert.equal(await this.under.countRecords(), expected, 'records at the destination');
  }

  async assertRecordsAtMost(most: number): Promise<void> {
    await this.destination.close();
    assert.ok((await this.under.countRecords()) <= most, 'records at the destination');
  }
}

// ——— what each fault must be reported as

function faultCases(): Case[] {
  return [
    replyCase('none', 'result', 'an answered write is a complete reply'),
    replyCase('tool_error', 'tool_error', 'an answer that says it is an error is a complete reply'),
    replyCase('protocol_error', 'protocol_error', 'a protocol error is a complete reply, not a proof'),
    endedCase('cut_before_record', 'cut', 0, 'a connection cut before the record may have sent'),
    endedCase('cut_after_record', 'cut', 1, 'a connection cut after the record may have sent'),
    endedCase('silent', 'timeout', 1, 'a write that is not answered in time may have landed'),
    endedCase('unreadable', 'unreadable', 1, 'a reply that cannot be read is not "not sent"'),
    {
      name: 'a destination that cannot be reached has been sent nothing',
      fault: 'unreachable',
      check: async (bench) => {
        const connected = await bench.destination.connect();
        // An adapter without a connection of its own finds out only when it sends.
        if (!connected.connected) assert.equal(bench.destination.isConnected(), false);
        const { report } = await bench.send();
        assert.equal(report.left, 'no');
        await bench.assertRecords(0);
      },
    },
  ];
}

function replyCase(
  fault: DestinationFault,
  kind: 'result' | 'tool_error' | 'protocol_error',
  name: string,
): Case {
  const check = async (bench: Bench) => {
    await bench.connect();
    const { report } = await bench.send();
    assert.equal(report.left, 'maybe');
    assert.equal(report.ended, 'reply');
    assert.equal(report.reply?.kind, kind);
    JSON.parse(report.reply.body);
    await bench.assertRecords(1);
  };
  return { name, fault, check };
}

function endedCase(
  fault: DestinationFault,
  ended: 'cut' | 'timeout' | 'unreadable',
  records: number,
  name: string,
): Case {
  const check = async (bench: Bench) => {
    await bench.connect();
    const { report } = await bench.send(ended === 'timeout' ? { replyTimeoutMs: SHORT_MS } : {});
    assert.equal(report.left, 'maybe');
    assert.equal(report.ended, ended);
    await bench.assertRecords(records);
  };
  return { name, fault, check };
}

// ——— what holds whatever the destination does

function wayCases(): Case[] {
  return [
    {
      name: 'what may not leave does not leave, and the connection goes on',
      fault: 'none',
      check: async (bench) => {
        await bench.connect();
        const { report, asked } = await bench.send({ mayLeave: () => false });
        assert.equal(report.left, 'no');
        assert.equal(report.proof, 'refused_by_sender');
        assert.equal(asked, 1);
        const next = await bench.send();
        assert.equal(next.report.left === 'maybe' && next.report.ended, 'reply');
        await bench.assertRecords(1);
      },
    },
    {
      name: 'a wait that was aborted before the write sends nothing',
      fault: 'none',
      check: async (bench) => {
        await bench.connect();
        const { report, asked } = await bench.send({ signal: AbortSignal.abort() });
        assert.equal(report.left, 'no');
        assert.equal(asked, 0);
        await bench.assertRecords(0);
      },
    },
    {
      name: 'after close nothing is sent, and close may be called again',
      fault: 'none',
      check: async (bench) => {
        await bench.connect();
        await bench.destination.close();
        assert.equal(bench.destination.isConnected(), false);
        const { report, asked } = await bench.send();
        assert.equal(report.left, 'no');
        assert.equal(asked, 0);
        assert.equal((await bench.destination.connect()).connected, false);
        await bench.assertRecords(0);
      },
    },
    {
      name: 'writes at the same time get each its own reply',
      fault: 'none',
      check: async (bench) => {
        await bench.connect();
        const sent = await Promise.all(Array.from({ length: 16 }, () => bench.send()));
        for (const { report } of sent) assert.equal(report.left === 'maybe' && report.ended, 'reply');
        await bench.assertRecords(16);
      },
    },
    {
      name: 'a question is answered and records nothing',
      fault: 'none',
      check: async (bench) => {
        await bench.connect();
        const report = await bench.destination.ask({ ...bench.under.question, timeoutMs: PLENTY_MS });
        assert.equal(report.answered, true);
        await bench.assertRecords(0);
      },
    },
    {
      name: 'an answer after the time-out is given as a late reply, once',
      fault: 'held',
      check: async (bench) => {
        await bench.connect();
        const { report } = await bench.send({ replyTimeoutMs: SHORT_MS });
        assert.equal(report.left === 'maybe' && report.ended, 'timeout');
        await bench.under.release();
        await bench.lateReply();
        await bench.assertRecords(1);
        assert.equal(bench.late.length, 1);
        assert.equal(bench.late[0]?.operation, 'op-1');
        assert.equal(bench.late[0]?.attempt, 'at-1');
        assert.ok(bench.late[0]?.reply.body.includes('mark-1'));
      },
    },
    {
      name: 'a wait that is aborted after the write ends at once, and the write may have landed',
      fault: 'silent',
      check: async (bench) => {
        await bench.connect();
        const abort = new AbortController();
        const { sending, handedOver } = bench.begin({ signal: abort.signal });
        await handedOver;
        abort.abort();
        const { report } = await sending;
        assert.equal(report.left === 'maybe' && report.ended, 'aborted');
        await bench.assertRecordsAtMost(1);
      },
    },
    {
      name: 'a write that waits when the adapter is closed may have landed',
      fault: 'silent',
      check: async (bench) => {
        await bench.connect();
        const { sending, handedOver } = bench.begin();
        await handedOver;
        await bench.destination.close();
        const { report } = await sending;
        assert.equal(report.left === 'maybe' && report.ended, 'aborted');
        await bench.assertRecordsAtMost(1);
      },
    },
  ];
}
