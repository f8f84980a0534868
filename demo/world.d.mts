// The shapes of world.mjs, for tests that are written in TypeScript.

import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import type { Operation } from '../src/core/operation.ts';
import type { HistoryEntry } from '../src/engine/readings.ts';
import type { TerminalRan } from './terminal.mjs';

export interface WorldOptions {
  readonly folder: string;
  readonly gateway?: boolean;
  readonly data?: string;
  /** `postgres://…`: the ledger is there, in a schema of its own. */
  readonly store?: string;
  readonly config?: string;
  readonly env?: { readonly [name: string]: string };
}

export interface Fault {
  readonly on: string;
  readonly do: 'exit' | 'lose_reply' | 'exit_after' | 'take' | 'find_nothing' | 'hide_first' | 'keep_value';
  readonly times?: number;
  readonly ms?: number;
}

export interface LogEntry {
  readonly event: 'started' | 'record' | 'fault';
  readonly at: string;
  readonly pid: number;
  readonly tool?: string;
  readonly record?: DestinationRecord;
}

export interface DestinationRecord {
  readonly [member: string]: unknown;
}

export interface Shown {
  readonly operation: Operation;
  readonly label: string;
  readonly sentence: string;
  readonly target: string | null;
  readonly digest: string;
  readonly history: readonly HistoryEntry[];
}

export interface Ran {
  readonly code: number | string;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
  /** What was printed, where it is JSON. */
  readonly json: unknown;
}

export interface Answer {
  /** The first text block, and all of them. */
  readonly text: string;
  readonly texts: readonly string[];
  readonly isError: boolean;
  /** From `_meta`; absent where the answer is the destination's own. */
  readonly operation: string | undefined;
  readonly facts: { readonly stage: string; readonly effect: string; readonly cause?: string } | undefined;
  readonly result: CallToolResult;
  readonly tries: number;
}

export interface CallOptions {
  readonly patienceMs?: number;
  readonly tries?: number;
  readonly run?: string;
  readonly step?: string;
  readonly single?: boolean;
  readonly occurrence?: number;
  readonly call?: string;
}

export interface Agent {
  /** Resolves when the process that it talks to has ended by itself. */
  readonly lost: Promise<void>;
  call(tool: string, args: object, options?: CallOptions): Promise<Answer>;
  kill(): Promise<void>;
  close(): Promise<void>;
}

export interface World {
  readonly folder: string;
  readonly data: string;
  readonly log: string;
  plan(...faults: readonly Fault[]): void;
  heal(on: string): void;
  entries(): readonly LogEntry[];
  records(tool?: string): readonly DestinationRecord[];
  faultsFired(): number;
  killDestination(): Promise<void>;
  agent(options?: { readonly crashAt?: string }): Promise<Agent>;
  counterfoil(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Ran>;
  show(id?: string): Promise<Shown | undefined>;
  approve(id: string, digest: string, by: string, env?: Readonly<Record<string, string>>): Promise<Ran>;
  asOwner(
    args: readonly string[],
    env?: Readonly<Record<string, string>>,
  ): Promise<TerminalRan & { readonly json: unknown }>;
  onTerminal(
    args: readonly string[],
    answers: readonly string[],
    env?: Readonly<Record<string, string>>,
  ): Promise<TerminalRan & { readonly json: unknown }>;
  deny(id: string, digest: string, by: string, reason: string): Promise<Ran>;
  close(): Promise<void>;
}

export function makeWorld(options: WorldOptions): World;
export function until(holds: () => unknown, what: string, ms?: number): Promise<void>;
export function within<Value>(promise: Promise<Value>, what: string, ms?: number): Promise<Value>;
