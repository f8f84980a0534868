// Many ordinary writes of one requester to one destination within an hour: a person is asked once whether to go on,
// and what comes meanwhile waits for that answer (D9).

import type { Operation, OperationId } from '../core/operation.ts';
import type { StreamWrite } from '../store/port.ts';
import type { EngineContext } from './context.ts';
import type { Draft } from './draft.ts';
import { asRecord, readOperation } from './records.ts';

const HOUR_MS = 3_600_000;
/**
 * After so many writes of ours those of other processes are counted again, or after a sixty-fourth of the limit: to
 * count reads operations, and a high limit may be passed by more.
 */
const RECOUNT_EVERY = 16;
const RECOUNT_SHARE = 64;
/** How many of the newest operations are looked at when counting. */
const COUNTED_MAX = 2_000;

export type GoOn =
  | { readonly go: true; readonly taken: () => void }
  /** This is the one with which a person is asked. */
  | { readonly go: false; readonly ask: (operation: OperationId) => StreamWrite }
  /** A person is being asked with that one. */
  | { readonly go: false; readonly waitFor: OperationId };

interface Window {
  times: number[];
  sinceCounted: number;
}

export class WriteRate {
  readonly #context: EngineContext;
  readonly #windows = new Map<string, Window>();

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /** A place among the hour's writes is taken at once; `taken` gives it back when nothing was recorded. */
  async judge({ call, facts }: Draft, at: number): Promise<GoOn> {
    const max = this.#context.settings.writesPerHourMax;
    const free: GoOn = { go: true, taken: () => {} };
    if (max === undefined || facts.class !== 'ordinary' || facts.mode !== undefined) return free;
    const name = `${call.destination}/${call.requester}`;
    const window = await this.#window(name, call, at, max);
    while ((window.times[0] ?? at) <= at - HOUR_MS) window.times.shift();
    if (window.times.length < max) {
      window.times.push(at);
      window.sinceCounted += 1;
      return { go: true, taken: () => void window.times.splice(window.times.indexOf(at), 1) };
    }
    return this.#asked(`rate:${name}`, at);
  }

  async #asked(stream: string, at: number): Promise<GoOn> {
    const { store, tenant } = this.#context;
    const [record] = await store.read(tenant, [stream]);
    const asked = (record?.state as { readonly operation: string } | undefined)?.operation;
    const standing = asked === undefined ? 'over' : await goOnStanding(this.#context, asked, at);
    if (standing === 'granted') return { go: true, taken: () => {} };
    if (standing === 'asked' && asked !== undefined) return { go: false, waitFor: asked };
    return {
      go: false,
      ask: (operation) => ({
        stream,
        expectedVersion: record?.version ?? 0,
        events: [{ type: 'asked_to_go_on', operation, at }],
        state: { operation },
      }),
    };
  }

  /** Counted from the store at first, and now and then: other processes write under the same name. */
  async #window(
    name: string,
    { destination, requester }: Draft['call'],
    at: number,
    max: number,
  ): Promise<Window> {
    let window = this.#windows.get(name);
    if (window !== undefined && window.sinceCounted < Math.max(RECOUNT_EVERY, max / RECOUNT_SHARE))
      return window;
    if (window === undefined) this.#windows.set(name, (window = { times: [], sinceCounted: 0 }));
    window.sinceCounted = 0;
    const { store, tenant } = this.#context;
    const limit = Math.min(Math.max(2 * max, 200), COUNTED_MAX);
    const records = await store.streams({ tenant, kind: 'op', newest: true, limit });
    const times = records
      .map((record) => asRecord(record).operation)
      .filter((operation) => operation.destination === destination && operation.requester === requester)
      .filter((operation) => countsAsWrite(operation) && operation.proposedAt > at - HOUR_MS)
      .map((operation) => operation.proposedAt);
    // What is being recorded at this moment is in memory alone.
    if (times.length > window.times.length) window.times = times.toSorted((a, b) => a - b);
    return window;
  }
}

/** Of what a person has decided on, none is counted: somebody has looked. */
function countsAsWrite({ observed, review, toolClass, why }: Operation): boolean {
  if (toolClass !== 'ordinary' || observed !== undefined || review !== undefined) return false;
  return why?.code !== 'waits_for_go_on' && why?.code !== 'arguments';
}

/** What was decided about going on, with the operation that asked for it; a yes holds for an hour. */
export async function goOnStanding(
  context: EngineContext,
  operation: OperationId,
  at: number,
): Promise<'asked' | 'granted' | 'over'> {
  const record = await readOperation(context, operation);
  const review = record?.operation.review;
  if (review?.decision?.kind === 'approved' && review.revoked === undefined) {
    return at - review.decision.at <= HOUR_MS ? 'granted' : 'over';
  }
  return record?.operation.stage === 'awaiting_approval' ? 'asked' : 'over';
}
