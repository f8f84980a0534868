// What a destination has promised, as data: the shapes of a loaded contract, its binding to a server's
// tools, and the facts about one tool that every decision of the core is made from.
//
// Member names are those of the contract files (snake_case), so that a fact can be traced from a decision to
// the line that states it. `contracts/` checks files against the schema and compiles them into `ToolFacts`.

import type { Policy } from './policy.ts';

export type Grade = 'documented' | 'source' | 'drilled' | 'reported' | 'assumed' | 'not_documented';

export interface FactEvidence {
  readonly grade: Grade;
  readonly source?: string;
  readonly checked_on?: string;
  readonly note?: string;
}

/** Only these grades may drive an automatic repeat or let an absence count (D7). */
export function isTrusted(evidence: FactEvidence): boolean {
  return evidence.grade === 'documented' || evidence.grade === 'source' || evidence.grade === 'drilled';
}

export type RepeatClass = 'unique' | 'state' | 'free';

/** How far a server's writes are guarded: policy, per server, chosen by a person (D9). */
export type Mode = 'observe' | 'guard' | 'strict';

/** How a tool's calls are treated in `guard` mode (D9). `unclassified`: nobody has said yet. */
export type ToolClass = 'read' | 'ordinary' | 'irreversible' | 'interactive' | 'unclassified';

/**
 * A place in a reply. `text`: the first text block; `json`: that block read as JSON; `structured`: the
 * structured content; `headers`: the headers of an HTTP reply as a map, its names in small letters. `path` is a JSON
 * pointer, empty for the whole.
 */
export interface ReplyPlace {
  readonly from: 'text' | 'json' | 'structured' | 'headers';
  readonly path?: string;
}

/**
 * A comparison with a reply or a record in it. Values are templates: `{title}` is an argument of the call,
 * `{$stamp}` the stamp written at send time, `{$record}` the record id that the destination gave.
 */
export interface Comparison extends Partial<ReplyPlace> {
  readonly equals?: unknown;
  readonly contains?: unknown;
  /** A list: each of its items is in the list at the place, in whatever order. */
  readonly contains_all?: unknown;
  readonly exists?: boolean;
}

/** A read-only tool of the same server, with its argument templates. */
export interface ToolQuestion {
  readonly name: string;
  readonly arguments: { readonly [argument: string]: unknown };
}

export type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/**
 * One request in the words of HTTP. Its texts are templates, as those of a `Comparison` are, with `{$key}` for the
 * value of the guard and `{name?}` for an argument without which the member is left out; each part is encoded for its
 * place.
 */
export interface HttpTemplate {
  /** `GET` where absent. */
  readonly method?: HttpMethod;
  /** Below the base address, unencoded: `/tickets/{id}`. One placeholder alone stands for an address of the same origin. */
  readonly path: string;
  readonly query?: { readonly [name: string]: unknown };
  readonly headers?: { readonly [name: string]: string };
  readonly body?: unknown;
  /** How the body is written; `json` where absent. */
  readonly content?: 'json' | 'form';
}

export interface HttpWrite extends HttpTemplate {
  readonly method: Exclude<HttpMethod, 'GET'>;
  readonly answer?: {
    /** What an acknowledgement is made of; `json` where absent. Of another form it is none. */
    readonly form?: 'json' | 'any';
    /** What an answer repeats of the request where it is an answer to it; where one differs it is another's. */
    readonly echoes?: readonly Comparison[];
  };
}

/** How the next page is found; the last one says so by its absence. */
export type NextPage =
  /** A `Link` header with `rel="next"` (RFC 8288). */
  | { readonly link: 'next' }
  /** A cursor in the page, sent as that parameter of the query. */
  | { readonly cursor: string; readonly query: string }
  /** Pages that are counted, until one is empty. */
  | { readonly page: string; readonly from?: number };

export interface HttpQuestion extends HttpTemplate {
  readonly pages?: {
    readonly next: NextPage;
    /** Beyond these an answer says nothing of what is absent, and nothing of what is there. */
    readonly pages_max?: number;
    readonly rows_max?: number;
  };
}

/** What marks a reply. Every member that is given must hold; lists hold when any entry does. */
export interface Signal {
  readonly kind?: readonly ('result' | 'tool_error' | 'protocol_error')[];
  readonly status?: readonly number[];
  readonly code?: readonly (string | number)[];
  /** A place in a reply that has this value, or any where none is given. */
  readonly marker?: Place;
  readonly text_starts?: readonly string[];
  readonly text_contains?: readonly string[];
}

/** A place in a request or reply of the destination's own protocol; `value` where what stands there counts. */
export interface Place {
  readonly in:
    | 'header'
    | 'query'
    | 'path'
    | 'body'
    | 'graphql_directive'
    | 'graphql_input'
    | 'message_header'
    | 'status'
    | 'code'
    | 'tag'
    | 'none';
  readonly name?: string;
  readonly value?: string;
}

export type Tri = 'yes' | 'no' | 'unknown';

export interface Lookup {
  readonly by:
    | 'request_key'
    | 'client_identity'
    | 'client_reference'
    | 'operation_handle'
    | 'natural_fields'
    | 'event_feed'
    | 'list_scan';
  /** Asked through a tool of the same server. */
  readonly tool?: ToolQuestion;
  /** Asked over HTTP; compiled to a `tool` that the destination understands. */
  readonly http?: HttpQuestion;
  /** In the words of its protocol, for people; nothing is asked by it. */
  readonly request?: string;
  /** Where the write has to carry our reference so that this route can find it. */
  readonly stamp?: Place;
  /** A resource that tells how far the work has come, in place of `found`. */
  readonly status?: WorkStatus;
  /** How the answer is read: the list of candidates, which of them count, and what must agree. */
  readonly found?: {
    readonly items?: ReplyPlace;
    readonly where?: readonly Comparison[];
    readonly record?: string;
    readonly version?: string;
    readonly content?: readonly Comparison[];
  };
  /** A reply that says "there is none" (for look-ups that do not answer with a list). */
  readonly absent_when?: Signal;
  readonly consistency: {
    readonly kind: 'read_after_write' | 'eventual' | 'unknown';
    readonly settle?: string;
  };
  readonly unique?: Tri;
  readonly available_for?: string;
  readonly proves: {
    readonly present: 'applied' | 'applied_if_content_matches';
    readonly absent: 'not_applied' | 'not_applied_after_settle' | 'nothing';
  };
  readonly evidence: FactEvidence;
}

/** A place that tells how far work has come, and the values of it that end the work. */
export interface WorkStatus {
  readonly state: ReplyPlace;
  readonly done: readonly string[];
  readonly failed: readonly string[];
  /** True where the contract states on trusted evidence that work which failed has changed nothing. */
  readonly failedMeansNotApplied?: boolean;
  /** The record that the work has made, once it is done. */
  readonly record?: ReplyPlace;
}

/** A callback of the destination: which operation it names, and what it says of it. */
export interface NoticeRule {
  readonly when?: readonly Comparison[];
  /** The place that names the operation, and by what. */
  readonly names: { readonly by: 'stamp' | 'request_key' | 'record'; readonly path: string };
  readonly means: 'applied' | 'not_applied';
  readonly evidence: FactEvidence;
}

export interface ReadBack {
  /** Absent only where it is asked over `http`, until that is compiled. */
  readonly tool?: ToolQuestion;
  readonly http?: HttpQuestion;
  readonly matches: readonly Comparison[];
  readonly version?: ReplyPlace;
  readonly evidence: FactEvidence;
}

export type OutcomeMeaning =
  | 'applied'
  | 'already_applied'
  | 'accepted'
  | 'in_progress'
  | 'not_applied'
  | 'not_applied_temporary'
  | 'unknown';

export interface OutcomeRule {
  readonly when: Signal;
  readonly means: OutcomeMeaning;
  readonly next?: 'done' | 'look_up' | 'wait_same_guard' | 'repeat_same_guard' | 'stop';
  readonly evidence?: FactEvidence;
}

/** For how long, and from when, a destination knows a guard's value again. */
export interface GuardWindow {
  readonly kind: 'duration' | 'resource_lifetime' | 'while_state' | 'session' | 'none' | 'unknown';
  /** What is promised: the only bound that may be counted on. */
  readonly at_least?: string;
  readonly at_most?: string;
  readonly from?: 'first_accept' | 'completion' | 'last_seen' | 'client_timestamp' | 'unknown';
  /** With `while_state`: the state, in words. */
  readonly while?: string;
  /** What the destination does with the same value afterwards. */
  readonly after?: 'executes_again' | 'rejected' | 'unknown';
}

export type CarrierEncoding =
  | 'opaque'
  | 'sf_string'
  | 'uuid'
  | 'uuid_v4'
  | 'base32hex'
  | 'etag'
  | 'identifier'
  | 'version_token'
  | 'full_state'
  | 'counter';

/** Where a guard's value stands in the request, and what it may look like there. */
export interface GuardCarrier {
  readonly in:
    | 'header'
    | 'query'
    | 'path'
    | 'body'
    | 'graphql_directive'
    | 'graphql_input'
    | 'message_header';
  readonly name?: string;
  readonly encoding?: CarrierEncoding;
  readonly max_length?: number;
  readonly pattern?: string;
}

export type GuardScope =
  | 'global'
  | 'account'
  | 'credential'
  | 'endpoint'
  | 'method'
  | 'region'
  | 'zone'
  | 'container'
  | 'parent'
  | 'queue'
  | 'partition'
  | 'integration'
  | 'resource';

/** What makes a repeat of the same write harmless at the destination (D7). */
export interface Guard {
  readonly kind: 'request_key' | 'client_identity' | 'precondition' | 'desired_state' | 'sequence';
  readonly carrier: GuardCarrier;
  readonly required?: 'always' | 'for_guarantee';
  /** What the value belongs to: under another one of these the same value is a new write. */
  readonly scope: readonly GuardScope[];
  readonly window: GuardWindow;
  readonly remembers?: {
    readonly success?: Tri;
    readonly client_error?: Tri;
    readonly server_error?: Tri;
    readonly conditions?: string;
  };
  /** The same value with the same payload. `side_effects`: whether mails, triggers and charges come again. */
  readonly same: {
    readonly result:
      | 'replays_original'
      | 'replays_current'
      | 'conflict'
      | 'converges'
      | 'silently_dropped'
      | 'appends_note'
      | 'executes_again'
      | 'unknown';
    readonly signal?: Signal;
    readonly side_effects?: 'once' | 'again' | 'unknown';
  };
  /** The same value with another payload. */
  readonly different: {
    readonly result:
      | 'rejected'
      | 'replays_original'
      | 'overwrites'
      | 'conflict'
      | 'executes_again'
      | 'silently_dropped'
      | 'not_applicable'
      | 'unknown';
    readonly signal?: Signal;
  };
  /** The same value while the first is still being worked on. */
  readonly in_flight: {
    readonly result:
      | 'rejected_in_progress'
      | 'waits'
      | 'executes_again'
      | 'serialised'
      | 'not_applicable'
      | 'unknown';
    readonly signal?: Signal;
  };
  /** What a reply bears when the guard was honoured and not passed over. */
  readonly honoured_proof?: Place;
  readonly after_delete?: 'blocked' | 'blocked_for_a_time' | 'allowed' | 'not_applicable' | 'unknown';
  readonly strength?: 'enforced' | 'best_effort' | 'unknown';
  readonly evidence: FactEvidence;
}

/** How a destination tells one state of a record from another, and whether it refuses a write to another one. */
export interface VersionFacts {
  readonly kind: 'revision' | 'content_hash' | 'timestamp' | 'opaque' | 'none' | 'unknown';
  readonly read?: Place;
  readonly write?: Place;
  readonly resolution?: string;
  /** Whether a change away and back leaves a trace in it. */
  readonly aba_safe: Tri;
  readonly enforced: 'atomic' | 'destination_best_effort' | 'read_then_write' | 'none' | 'unknown';
  readonly fail?: Signal;
  /** Whether our own repeat after a lost reply fails the check, so that a failure proves nothing. */
  readonly own_repeat_fails?: Tri;
  readonly evidence: FactEvidence;
}

/** What others changed since a write of ours; `since: 'none'` states that there is no feed (D11). */
export interface ChangeFeed {
  readonly since: 'version' | 'cursor' | 'instant' | 'none';
  readonly request?: string;
  readonly tool?: ToolQuestion;
  readonly tells?: readonly ('authors' | 'versions' | 'values' | 'deletions' | 'times')[];
  /** Whether every change is listed. */
  readonly complete?: Tri;
  readonly available_for?: string;
  readonly consistency?: Lookup['consistency'];
  readonly evidence: FactEvidence;
}

/** The members of a write of several, and how the reply tells what became of each. */
export interface BatchItems {
  /** The argument that lists them. */
  readonly argument: string;
  readonly reply?: ReplyPlace;
  readonly matched_by: 'position' | 'key' | 'nothing';
  /** With `key`: where each names itself, in the argument and in the reply. */
  readonly key?: string;
  readonly outcomes?: readonly OutcomeRule[];
  readonly evidence: FactEvidence;
}

export interface Reversal {
  readonly kind: 'cancel' | 'undo' | 'restore' | 'delete' | 'correct' | 'supersede' | 'none';
  readonly operation?: string;
  readonly possible_while?: string;
  readonly within?: string;
  readonly restores?: 'record' | 'state_only' | 'partial' | 'nothing';
  /** What stays behind: who was told, what was read, what it cost. */
  readonly leaves?: readonly string[];
  readonly version_checked?: Tri;
  readonly history?: 'kept' | 'lost' | 'unknown';
  readonly evidence: FactEvidence;
}

export interface ContractLimits {
  readonly rate?: string;
  readonly concurrency?: number;
  readonly min_interval?: string;
  readonly max_body?: string;
  readonly retry_after?: Place;
  readonly reply_timeout?: string;
  /** A request whose bytes left may still be applied this long afterwards; unset: 15 minutes (D7). */
  readonly late_arrival?: string;
  readonly evidence?: FactEvidence;
}

/** One write of a destination, as its contract states it. */
export interface ContractOperation {
  readonly id: string;
  readonly match: readonly string[];
  readonly effect: 'create' | 'update' | 'replace' | 'upsert' | 'delete' | 'action' | 'message';
  readonly destructive?: boolean;
  /** What comes of it beside the record, and no reversal takes back. */
  readonly side_effects?: readonly string[];
  /** Which arguments say to whom, on what and how much; none of them may be left out of the identity. */
  readonly roles?: { readonly [role in 'recipient' | 'record' | 'amount']?: readonly string[] };
  /** Arguments that make the intent, as JSON pointers without the leading slash; absent: all of them. */
  readonly identity?: readonly string[];
  readonly repeat?: RepeatClass;
  /** The object that is changed. `id` entries are templates; several ids are several targets. */
  readonly target?: { readonly type: string; readonly id: string | readonly string[] };
  /** The argument that carries our own reference; it leaves the advertised schema and is filled by us. */
  readonly stamp?: { readonly argument: string };
  readonly acknowledgement?: { readonly record?: ReplyPlace; readonly version?: ReplyPlace };
  readonly completion: {
    readonly kind: 'synchronous' | 'accepted_then_poll' | 'accepted_no_handle';
    /** Where a reply says by what the work is asked about. */
    readonly handle?: Place;
    readonly done?: readonly string[];
    readonly failed?: readonly string[];
    readonly http?: HttpQuestion & {
      /** JSON pointers into the answer: its state, and the record once it is done. */
      readonly state: string;
      readonly record?: string;
      readonly failed_means?: 'not_applied' | 'unknown';
      readonly evidence: FactEvidence;
    };
  };
  /** How it is sent, where its destination is reached over HTTP. */
  readonly http?: HttpWrite;
  readonly notices?: readonly NoticeRule[];
  readonly batch?: 'single' | 'atomic' | 'per_item' | 'partial_possible';
  readonly items?: BatchItems;
  readonly guards: readonly Guard[];
  readonly lookups: readonly Lookup[];
  readonly readback?: ReadBack;
  readonly version?: VersionFacts;
  readonly change_feed?: ChangeFeed;
  readonly outcomes: readonly OutcomeRule[];
  readonly reversals: readonly Reversal[];
  readonly limits?: ContractLimits;
  /** How effect, identity, repeat class and target are known. */
  readonly evidence?: FactEvidence;
  readonly open_questions?: readonly string[];
}

export interface Contract {
  readonly contract: 1;
  readonly id: string;
  readonly revision: number;
  readonly destination: {
    readonly name: string;
    readonly protocol: string;
    readonly vendor?: string;
    readonly base?: string;
    readonly api_version?: string;
  };
  readonly ownership: {
    readonly owner: string;
    readonly queue?: string;
    readonly escalation?: string;
    readonly reviewed_on: string;
    readonly review_by: string;
  };
  /** What must be set in the vendor's own library, which may repeat a write beneath us. */
  readonly client?: {
    readonly library?: string;
    readonly hidden_repeats?: 'none' | 'switchable' | 'not_switchable' | 'unknown';
    readonly required_settings?: { readonly [setting: string]: unknown };
    readonly evidence?: FactEvidence;
  };
  readonly limits?: ContractLimits;
  readonly operations: readonly ContractOperation[];
}

/**
 * Everything that the core needs to know about one tool when it decides about one call. Compiled from the
 * contract, the binding, the owner's configuration and confirmed rules; a value, recorded by its digest.
 */
export interface ToolFacts {
  readonly destination: string;
  readonly tool: string;
  readonly class: ToolClass;
  /** Where the class comes from; shown wherever the class is. */
  readonly classSource: 'configuration' | 'owner' | 'binding' | 'contract' | 'hint' | 'nobody';
  /** Absent: `guard`. */
  readonly mode?: Exclude<Mode, 'guard'>;
  /** The tool is not what its class was confirmed for: its class before, which counts no more. */
  readonly changedFrom?: Exclude<ToolClass, 'unclassified'>;
  readonly repeat: RepeatClass;
  readonly identity?: readonly string[];
  readonly target?: { readonly type: string; readonly id: readonly string[] };
  readonly stamp?: { readonly argument: string };
  /** True where a contract states that the server itself refuses arguments that do not fit, unapplied. */
  readonly checksArguments: boolean;
  readonly contract?: { readonly id: string; readonly revision: number; readonly reviewBy: string };
  readonly operation?: ContractOperation;
  /** How much its owner lets be sent there; no part of what "the same rule" means. */
  readonly sending?: {
    readonly concurrency?: number;
    readonly rate?: { readonly writes: number; readonly perMs: number };
  };
  /** Its owner's rules, which say of each call what they ask for; judged again when it is sent. */
  readonly policy?: Policy;
  /** A standing permission that is in force for this tool in the run of the call; no part of what "the same rule" means. */
  readonly granted?: { readonly id: string; readonly by: string };
  /** SHA-256 of the canonical form of the others: what "the same rule" means. */
  readonly digest: string;
}

const DURATION = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,3})?)S)?)?$/;

/** Milliseconds of an ISO 8601 duration of days, hours, minutes and seconds; `undefined` if it is none. */
export function durationMs(text: string | undefined): number | undefined {
  const parts = text === undefined ? null : DURATION.exec(text);
  if (parts === null || text === 'P' || text?.endsWith('T')) return undefined;
  const [, days = '0', hours = '0', minutes = '0', seconds = '0'] = parts;
  return (
    ((Number(days) * 24 + Number(hours)) * 60 + Number(minutes)) * 60_000 + Math.round(Number(seconds) * 1000)
  );
}

/** The product's floor where a contract is silent about late arrival (D7). */
export const LATE_ARRIVAL_FLOOR_MS = 15 * 60_000;

export function lateArrivalMs(operation: ContractOperation | undefined): number {
  return durationMs(operation?.limits?.late_arrival) ?? LATE_ARRIVAL_FLOOR_MS;
}
