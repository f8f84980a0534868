// The calls of tools, each decided in its turn: passed to the server as it came, recorded as a write, or answered
// here; and told truthfully.

import { isLocalPrincipal } from '../access/principals.ts';
import {
  fateUnknownText,
  misconfiguredText,
  readOnlyText,
  statusText,
  stoppedCallText,
  storeDownText,
  unrepresentableText,
  unusableText,
} from '../core/answer-wording.ts';
import type { JsonObject } from '../core/canonical.ts';
import type { ToolFacts } from '../core/contract.ts';
import type { Operation } from '../core/operation.ts';
import { refusedReader } from '../core/policy.ts';
import type { Reached } from '../core/stopping-points.ts';
import type { Answers, Question } from '../destination/mcp/asking.ts';
import type { McpFrame } from '../destination/mcp/frame.ts';
import { type Answer, ownOperation } from '../engine/answers.ts';
import type { WriteCall } from '../engine/draft.ts';
import type { Ledger } from '../engine/ledger.ts';
import type { OperationReading } from '../engine/readings.ts';
import { StoreFault } from '../store/port.ts';
import { answerDoor } from './answer-door.ts';
import { answerFrame, errorFrame, resultFrame, textResult } from './answer-frame.ts';
import { type CallOrigin, readToolCall, type ToolCall } from './call.ts';
import { ReviewLinks } from './review-links.ts';
import type { SchemaChecks } from './schema-checks.ts';
import { readStatusQuestion, statusResult } from './status-tool.ts';
import { TaskDoor } from './task-door.ts';
import type { TaskGeneration } from './task-shapes.ts';
import type { ServerFacts } from './tool-facts.ts';
import { type ListedTool, schemaWithout } from './tool-list.ts';
import type { GuardedServer } from './upstream.ts';

export interface CallParts {
  readonly ledger: Ledger;
  readonly server: GuardedServer;
  readonly facts: ServerFacts;
  readonly requester: string;
  readonly run: string | undefined;
  /** Whether this requester may write at all; everybody may where absent. */
  readonly mayWrite?: (requester: string) => Promise<boolean>;
  /** Brings the rules up to date with the configuration in force, where that may have changed. */
  readonly followPolicy?: () => Promise<void> | undefined;
  /** Where a person can look, in words or as an address. */
  readonly where: string;
  readonly report: (message: string) => void;
  readonly reached: Reached;
  readonly schemas: SchemaChecks;
}

/** The connection to the client, and through it to the server. */
export interface Line {
  /** Has the server answer the call, as it came. */
  pass(open: OpenCall): Promise<void>;
  /** Answers the call. @param written told whether the operating system has taken it */
  answer(open: OpenCall, frame: string, written?: (isWritten: boolean) => void): void;
  /**
   * Puts a question of the gateway's own to the client of a call; absent where that client has not said that it can be
   * given addresses to open.
   */
  askLink?(open: OpenCall, question: Question): Promise<Answers> | undefined;
  /** Answers the call of a client of 2026-07-28 with a task, behind which it goes on; `result` is JSON text. */
  giveTask?(open: OpenCall, task: string, result: string): void;
  /** Aborted once the client has closed its end. */
  readonly ended: AbortSignal;
  /** Its connection to the server, as `GuardedServer` names it. */
  readonly via: string;
}

/** One `tools/call` that the gateway has to answer or to pass on. */
export interface OpenCall {
  /** The raw text of its id, and the key that it is open under. */
  readonly id: string;
  readonly key: string;
  readonly frame: McpFrame;
  /** Aborted when the client takes the call back or is gone. */
  readonly signal: AbortSignal;
  /** Set before anything is recorded for it: from then on a fault leaves open what has happened. */
  isProposed: boolean;
  /** Set where it asks to be run as a task: its client knows no other answer but an error. */
  isTask?: boolean;
  /** Of a client of 2026-07-28: whether it says that it can be given a task; absent for clients of sessions. */
  readonly declaresTasks?: boolean;
}

/** A call of which everything could be read. */
type ReadableCall = ToolCall & {
  readonly arguments: Extract<ToolCall['arguments'], { ok: true }>;
  readonly origin: Extract<CallOrigin, { ok: true }>;
};

const CODE_INVALID_PARAMS = -32602;
/** A write that was asked for as a task and is none: the message says what is known of it. */
const CODE_NO_TASK = 7004;
/** How long a client that can be given a task waits for an outcome before it is given one. */
const TASK_AFTER_MS = 500;
/** How often a write behind a task is looked at, should no news of it come. */
const FOLLOW_MS = 1_000;

export class ToolCalls {
  readonly #parts: CallParts;
  readonly #line: Line;
  readonly #tasks: TaskDoor;
  readonly #links: ReviewLinks<OpenCall>;

  constructor(parts: CallParts, line: Line) {
    this.#parts = parts;
    this.#line = line;
    this.#links = new ReviewLinks(parts, (open, question) => line.askLink?.(open, question));
    this.#tasks = new TaskDoor(parts);
  }

  /** Never rejects: a fault of ours is an answer as well. */
  async call(open: OpenCall): Promise<void> {
    try {
      await this.#decide(open);
    } catch (cause) {
      this.#fault(open, cause);
    }
  }

  async #decide(open: OpenCall): Promise<void> {
    const { run, server } = this.#parts;
    const { head, text } = open.frame;
    const reading = readToolCall(head?.params && text.slice(head.params.start, head.params.end), run);
    if (!reading.ok) {
      this.#answerError(open, `The call cannot be read: ${reading.problem}.`);
      return;
    }
    const call = inUtf8(reading.call, open.frame);
    const followed = this.#parts.followPolicy?.();
    if (followed !== undefined) await followed;
    if (this.#isObserved) {
      await this.#observe(open, call);
      return;
    }
    if (call.tool === server.tools.helperName) {
      await this.#status(open, call);
      return;
    }
    const { problem, tool } = await this.#listed(call.tool);
    const unusable = server.tools.callProblem(call.tool);
    open.isTask = taskGeneration(open, call) === 'sessions';
    if (tool === undefined) this.#answerText(open, this.#unlisted(call.tool, problem));
    else if (unusable !== undefined) this.#answerText(open, unusableText(call.tool, unusable));
    else if (!(await this.#isRead(call))) await this.#write(open, call, tool);
    else if (!open.signal.aborted) await this.#line.pass(open);
  }

  /** Whether the call is known to change nothing: then it is the server's, whatever is in it. */
  async #isRead(call: ToolCall): Promise<boolean> {
    const { facts } = this.#parts;
    if (!call.arguments.ok) return facts.isRead(call.tool);
    const known = await this.#factsOf(call.tool, call.arguments.value);
    return known === undefined ? facts.isRead(call.tool) : known.class === 'read';
  }

  get #isObserved(): boolean {
    return this.#parts.facts.mode === 'observe';
  }

  /** Whether its caller may write at all; it is told where not. */
  async #mayWrite(open: OpenCall, tool: string): Promise<boolean> {
    const { mayWrite, requester, server } = this.#parts;
    if (mayWrite === undefined || (await mayWrite(requester))) return true;
    this.#answerText(open, readOnlyText(tool, server.name));
    return false;
  }

  /** Each call goes to the server and its answer comes back as it is; what can be recorded of a write is. */
  async #observe(open: OpenCall, call: ToolCall): Promise<void> {
    const { facts, ledger, server } = this.#parts;
    const { problem, tool } = await this.#listed(call.tool);
    const isRead = tool !== undefined && (await this.#isRead(call));
    if (!isRead && !(await this.#mayWrite(open, call.tool))) return;
    if (problem !== undefined) {
      // It is away: nothing passes, and the client is told so as without us.
      if (!open.signal.aborted) await this.#line.pass(open);
      return;
    }
    const { arguments: args, origin } = call;
    let answer: Answer = { kind: 'pass', detail: '' };
    if (!isRead) {
      const isTold =
        tool !== undefined && args.ok && origin.ok && facts.obstacle(call.tool, args.value) === undefined;
      if (call.isTask) ledger.gaps.note(server.name, call.tool, 'it is run as a task of its server');
      else if (!isTold)
        ledger.gaps.note(server.name, call.tool, 'the call could not be read as an operation');
      else if (!open.signal.aborted) {
        open.isProposed = true;
        answer = await ledger.write(this.#asWrite(open, { ...call, origin, arguments: args }, tool));
      }
    }
    if (answer.kind !== 'pass' && tool !== undefined) await this.#answer(open, answer, tool);
    else if (!isRead && (await this.#isStopped(open, call.tool))) return;
    else if (!open.signal.aborted) await this.#line.pass(open);
  }

  /** Also what is no operation is not passed on under a stop (I8); its caller is told so. */
  async #isStopped(open: OpenCall, tool: string): Promise<boolean> {
    const { ledger, requester, server } = this.#parts;
    const stop = await ledger.stops.over({ destination: server.name, tool, requester });
    if (stop !== undefined) this.#answerText(open, stoppedCallText(stop, { destination: server.name, tool }));
    return stop !== undefined;
  }

  /** The call as the ledger is handed it. */
  #asWrite(
    open: OpenCall,
    { arguments: args, meta, origin, tool: name }: ReadableCall,
    tool: ListedTool,
  ): WriteCall {
    const { requester, server } = this.#parts;
    return {
      destination: server.name,
      tool: name,
      arguments: args.value,
      requester,
      toolDigest: tool.digest,
      toolDefinition: tool.definition,
      replays: origin.replays,
      signal: open.signal,
      hasLeft: () => this.#line.ended.aborted,
      delivery: 'told',
      via: `${this.#line.via}:${open.key}`,
      ...(origin.run === undefined ? {} : { run: origin.run }),
      ...(origin.references === undefined ? {} : { references: origin.references }),
      ...(meta === undefined ? {} : { meta }),
    };
  }

  async #write(open: OpenCall, call: ToolCall, tool: ListedTool): Promise<void> {
    const { facts, ledger, server } = this.#parts;
    const { origin } = call;
    const generation = taskGeneration(open, call);
    if (!(await this.#mayWrite(open, call.tool))) return;
    if (!call.arguments.ok) {
      this.#answerText(open, call.arguments.refusal);
      return;
    }
    if (!origin.ok) {
      this.#answerError(open, `The call cannot be read: ${origin.problem}.`);
      return;
    }
    const args = call.arguments.value;
    const obstacle = facts.obstacle(call.tool, args);
    if (obstacle !== undefined) {
      this.#answerText(open, misconfiguredText(call.tool, obstacle));
      return;
    }
    const stamp = facts.for(server.name, call.tool, args)?.stamp?.argument;
    const problem = await this.#schemaProblem(tool, args, stamp);
    // Taken back before anything was recorded: it never was.
    if (open.signal.aborted) return;
    open.isProposed = true;
    const read = { ...call, origin, arguments: call.arguments };
    let answer = await ledger.write({
      ...this.#asWrite(open, read, tool),
      ...(problem === undefined ? {} : { schemaProblem: problem }),
      ...(generation === undefined ? {} : { waitMs: generation === 'sessions' ? 0 : TASK_AFTER_MS }),
    });
    if (generation !== 'sessions') answer = await this.#links.before(answer, open);
    const isTold = generation !== undefined && (await this.#answerTask(open, answer, generation));
    if (!isTold) await this.#answer(open, answer, tool);
  }

  /**
   * Answers with a task, where the call can be one. In sessions the client has asked for it and knows no other answer;
   * later clients are given one only for what has no outcome yet.
   */
  async #answerTask(open: OpenCall, answer: Answer, generation: TaskGeneration): Promise<boolean> {
    const { ledger, report } = this.#parts;
    if (answer.kind === 'not_recorded' || answer.kind === 'fate_unknown' || answer.kind === 'pass') {
      if (generation === 'stateless') return false;
      this.#answerError(open, unrecordedText(answer), CODE_NO_TASK);
      return true;
    }
    const { operation } = answer;
    const hasEnded = operation.stage === 'closed' || operation.stage === 'parked';
    if (generation === 'stateless' && (answer.kind !== 'state' || hasEnded)) return false;
    // Whatever it holds is told with the task.
    if (answer.kind === 'reply') ledger.undelivered(operation.id);
    if (open.signal.aborted) return true;
    try {
      const { id, result } = await this.#tasks.begin(generation, answer);
      if (generation === 'sessions') this.#line.answer(open, resultFrame(open.id, result));
      else this.#line.giveTask?.(open, id, result);
      // Whoever is given a task waits for no question before it: it is put beside it.
      if (generation === 'sessions') void this.#links.offer(answer, open, id);
    } catch (cause) {
      if (!(cause instanceof StoreFault)) throw cause;
      report(`A task could not be begun: ${cause.message}`);
      if (generation === 'stateless') return false;
      const { helperName: helperTool } = this.#parts.server.tools;
      this.#answerError(open, statusText(operation, { helperTool, where: this.#parts.where }), CODE_NO_TASK);
      return true;
    }
    await this.#followed(operation);
    return true;
  }

  /** Until its attempt is over, its server may have something to say to its client, or to ask. */
  async #followed({ id, stage }: Operation): Promise<void> {
    const { ended } = this.#line;
    for (let now = stage; now === 'sending' && !ended.aborted; ) {
      now = (await this.#parts.ledger.status(id, FOLLOW_MS, ended).catch(() => undefined))?.stage ?? 'closed';
    }
  }

  /** Facts as they are now: a class that an owner confirmed a moment ago counts, one that was revoked does not. */
  async #factsOf(tool: string, args: JsonObject): Promise<ToolFacts | undefined> {
    const { facts, ledger, server } = this.#parts;
    const known = facts.for(server.name, tool, args);
    if (known?.classSource !== 'nobody' && known?.classSource !== 'owner') return known;
    try {
      facts.confirm(await ledger.rules());
    } catch {
      // The store is down: the write will be answered so. What was confirmed before is not to be relied on.
      facts.confirm([]);
    }
    return facts.for(server.name, tool, args);
  }

  /** The tool as it is listed now; `problem`: why the server has not listed anything. */
  async #listed(
    tool: string,
  ): Promise<{ readonly tool?: ListedTool | undefined; readonly problem?: string | undefined }> {
    const { server } = this.#parts;
    const known = server.tools.get(tool);
    if (known !== undefined && server.isConnected()) return { tool: known };
    // One that is being read, or is to be, is read anyway.
    if (known === undefined && server.tools.isFresh) server.tools.markStale();
    // Where the server is away, what it listed before is what is known; the write waits for it then.
    const connection = await server.connect();
    return {
      tool: server.tools.get(tool) ?? known,
      problem: connection.connected ? undefined : connection.detail,
    };
  }

  /** Nobody knows what it would do, so that it is not passed on. */
  #unlisted(tool: string, problem: string | undefined): string {
    const { server } = this.#parts;
    return server.tools.isKnown
      ? `NOT SENT — ${server.name} lists no tool ${quoted(tool)}. Nothing was recorded. Correct and call again.`
      : `NOT SENT — the tools of ${server.name} are not known yet: ${quoted(problem ?? 'it has listed none')}. Nothing was recorded. Tell the user; it may be called again.`;
  }

  async #schemaProblem(
    tool: ListedTool,
    args: JsonObject,
    stamp: string | undefined,
  ): Promise<string | undefined> {
    if (tool.inputSchema === undefined) return undefined;
    const schema = stamp === undefined ? tool.inputSchema : schemaWithout(tool.inputSchema, stamp);
    const given =
      stamp === undefined
        ? args
        : Object.fromEntries(Object.entries(args).filter(([name]) => name !== stamp));
    return this.#parts.schemas.problem(schema, given, `the tool ${tool.name}`);
  }

  async #answer(open: OpenCall, answer: Answer, tool: ListedTool): Promise<void> {
    const { ledger, reached } = this.#parts;
    const frame = await answerFrame(open.id, answer, answerDoor(this.#parts, tool));
    reached('before_answer');
    const operation = ownOperation(answer);
    if (open.signal.aborted) {
      if (operation !== undefined) ledger.undelivered(operation.id);
      return;
    }
    this.#line.answer(open, frame, (isWritten) => {
      if (operation === undefined) return;
      // A client that has closed its end may read on, or not: nothing shows that this has reached it.
      if (!isWritten || this.#line.ended.aborted) ledger.undelivered(operation.id);
      else if (operation.stage === 'closed') ledger.delivered(operation.id);
    });
    reached('answered');
  }

  async #status(open: OpenCall, call: ToolCall): Promise<void> {
    const { ledger } = this.#parts;
    const question = call.arguments.ok
      ? readStatusQuestion(call.arguments.value)
      : { ok: false as const, problem: 'its arguments cannot be read' };
    if (!question.ok) {
      this.#answerText(open, `The question does not fit: ${question.problem}.`);
      return;
    }
    if (question.reason !== undefined && !(await this.#mayWrite(open, call.tool))) return;
    let result: string | undefined;
    try {
      const signal = AbortSignal.any([open.signal, this.#line.ended]);
      const named =
        question.reason === undefined
          ? question.operation
          : await this.#again(question.operation, question.reason);
      const operation = named && (await ledger.status(named, question.waitMs, signal));
      const reading = operation && this.#visible(await ledger.readings.reading(operation));
      result = reading && this.#statusOf(reading);
    } catch (cause) {
      this.#parts.report(`An operation could not be read: ${describe(cause)}`);
      this.#answerText(
        open,
        'The ledger cannot be read now. What is recorded stays recorded; ask again later.',
      );
      return;
    }
    if (result === undefined) {
      this.#answerText(
        open,
        `No operation ${quoted(question.operation)} is recorded here: it never reached this ledger.`,
      );
    } else if (!open.signal.aborted) this.#line.answer(open, resultFrame(open.id, result));
  }

  #statusOf(reading: OperationReading): string {
    const { ledger, server, where } = this.#parts;
    const cancel = ledger.stops.cancelOf(reading.operation);
    const words = { helperTool: server.tools.helperName, where };
    return statusResult(reading, words, cancel.cancelled ? cancel.acknowledgements : undefined);
  }

  /** The operation that the caller is told of: the review that was opened for a second one, or what stands in its way. */
  async #again(operation: string, reason: string): Promise<string | undefined> {
    const { ledger, requester, server } = this.#parts;
    await server.connect();
    const asked = await ledger.again({ operation, requester, reason });
    if (asked === 'not_found') return undefined;
    if (asked === 'tool_unknown' || asked === 'altered') return operation;
    return asked.opened ? asked.operation.id : asked.stands.id;
  }

  /**
   * The local account sees everything. Another principal sees of others' work only that it is there, where it may ask
   * this server: what it was told to ask after, without anybody's words.
   */
  #visible(reading: OperationReading): OperationReading | undefined {
    const { requester, server } = this.#parts;
    const { operation } = reading;
    if (isLocalPrincipal(requester) || operation.requester === requester) return reading;
    if (operation.destination !== server.name) return undefined;
    if (refusedReader(operation.policy, requester) !== undefined) return undefined;
    return { ...reading, target: undefined, quote: undefined, reason: undefined, reply: undefined };
  }

  #fault(open: OpenCall, cause: unknown): void {
    this.#parts.report(`A call ended in a fault of the gateway: ${describe(cause)}`);
    this.#answerText(
      open,
      open.isProposed
        ? 'OUTCOME UNKNOWN — the gateway met a fault of its own. Do not repeat this and do not do it another way. Tell the user.'
        : 'NOT RECORDED, NOT SENT — the gateway met a fault of its own before that. Do not do it another way. Tell the user.',
    );
  }

  /** Words in place of a result. Whoever has asked for a task knows only tasks and errors. */
  #answerText(open: OpenCall, words: string): void {
    if (open.isTask === true) this.#answerError(open, words, CODE_NO_TASK);
    else if (!open.signal.aborted) this.#line.answer(open, resultFrame(open.id, textResult(words, true)));
  }

  #answerError(open: OpenCall, message: string, code = CODE_INVALID_PARAMS): void {
    if (!open.signal.aborted) this.#line.answer(open, errorFrame(open.id, code, message));
  }
}

/** Whether, and how, the answer to a call may be a task. */
function taskGeneration({ declaresTasks }: OpenCall, call: ToolCall): TaskGeneration | undefined {
  if (declaresTasks !== undefined) return declaresTasks ? 'stateless' : undefined;
  return call.isTask ? 'sessions' : undefined;
}

function unrecordedText(answer: Extract<Answer, { kind: 'not_recorded' | 'fate_unknown' | 'pass' }>): string {
  return answer.kind === 'fate_unknown' ? fateUnknownText(answer.operation) : storeDownText();
}

const QUOTED_MAX = 160;

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, QUOTED_MAX));
}

function describe(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

/** Bytes that are no text were read as U+FFFD: a write would be recorded, and sent, as something else. */
function inUtf8(call: ToolCall, { bytes, text }: McpFrame): ToolCall {
  if (!text.includes('\uFFFD') || Buffer.from(text, 'utf8').equals(bytes)) return call;
  return {
    ...call,
    arguments: { ok: false, refusal: unrepresentableText('They hold bytes that are not UTF-8.') },
  };
}
