// Which run a call belongs to, and when that run began: given by the orchestrator, or weak (D2, "run").

import type { DecisionStrength, RunReference } from '../core/operation.ts';
import type { Ending } from '../core/stop.ts';
import type { Json, Requirement, Store, StreamWrite } from '../store/port.ts';

export interface GivenRun {
  readonly id: string;
  readonly step?: string;
  readonly single?: boolean;
  /** Declared by the orchestrator; 0 when absent. */
  readonly occurrence?: number;
}

/** A run as the next commit needs it. */
export interface ResolvedRun {
  readonly reference: RunReference;
  /** When its row was first committed: what intent keys are led by. */
  readonly beganAt: number;
  /** The run's first row, when this call is its first. */
  readonly write?: StreamWrite;
  /** The row as it was read: a weak run may have rolled over since, and a given one may have been cancelled. */
  readonly requires?: Requirement;
  /** By a person: whatever is asked for in it is closed at once. */
  readonly cancelled?: Extract<Ending, { readonly code: 'cancelled' }>;
  /** The weak run before this one, which counts as the same. */
  readonly previous?: { readonly reference: RunReference; readonly beganAt: number };
}

interface RunState {
  readonly beganAt: number;
  /** Given runs only: whose it is. */
  readonly principal?: string;
  readonly cancelled?: { readonly by: string; readonly at: number; readonly strength?: DecisionStrength };
  /** Weak runs only. */
  readonly generation?: number;
  readonly previousBeganAt?: number;
}

const WEAK_RUN_MS = 24 * 3_600_000;

/** Remembered; read again when a commit that requires them is stale: rolled over, or cancelled. */
export class Runs {
  readonly #store: Store;
  readonly #tenant: string;
  readonly #known = new Map<string, { readonly version: number; readonly state: RunState }>();

  constructor(store: Store, tenant: string) {
    this.#store = store;
    this.#tenant = tenant;
  }

  async resolve(
    given: GivenRun | undefined,
    principal: string,
    destination: string,
    at: number,
  ): Promise<ResolvedRun> {
    return given === undefined ? this.#weak(principal, destination, at) : this.#given(given, principal, at);
  }

  /** After a stale commit: what is remembered may be old. */
  forget(run: ResolvedRun): void {
    const stream = run.write?.stream ?? run.requires?.stream ?? runStream(run.reference.id);
    this.#known.delete(stream);
  }

  /** A run is work for one requester (D2): the same name given by another principal is another run. */
  async #given(given: GivenRun, principal: string, at: number): Promise<ResolvedRun> {
    for (let { id } = given; ; id = `${id} of ${principal}`) {
      const stream = runStream(id);
      const reference: RunReference = {
        id,
        weak: false,
        ...(given.step === undefined ? {} : { step: given.step }),
        ...(given.single === undefined ? {} : { single: given.single }),
      };
      const known = await this.#read(stream);
      if (known === undefined) {
        return { reference, beganAt: at, write: firstRow(stream, 0, { beganAt: at, principal }) };
      }
      const { beganAt, cancelled, principal: owner = principal } = known.state;
      if (owner !== principal) continue;
      return {
        reference,
        beganAt,
        requires: { stream, version: known.version },
        ...(cancelled === undefined ? {} : { cancelled: cancelledBy(cancelled) }),
      };
    }
  }

  async #weak(principal: string, destination: string, at: number): Promise<ResolvedRun> {
    const name = `weak/${principal}/${destination}`;
    // A kind of its own: no run that is given can have its name.
    const stream = `weak:${name}`;
    const known = await this.#read(stream);
    if (known === undefined) {
      const state: RunState = { beganAt: at, generation: 1 };
      return { reference: weakReference(name, 1), beganAt: at, write: firstRow(stream, 0, state) };
    }
    const { state, version } = known;
    const generation = state.generation ?? 1;
    if (at - state.beganAt >= WEAK_RUN_MS) {
      const rolled: RunState = { beganAt: at, generation: generation + 1, previousBeganAt: state.beganAt };
      return {
        reference: weakReference(name, generation + 1),
        beganAt: at,
        write: firstRow(stream, version, rolled),
        previous: { reference: weakReference(name, generation), beganAt: state.beganAt },
      };
    }
    return {
      reference: weakReference(name, generation),
      beganAt: state.beganAt,
      requires: { stream, version },
      ...(state.previousBeganAt === undefined
        ? {}
        : { previous: { reference: weakReference(name, generation - 1), beganAt: state.previousBeganAt } }),
    };
  }

  async #read(stream: string): Promise<{ readonly version: number; readonly state: RunState } | undefined> {
    const remembered = this.#known.get(stream);
    if (remembered !== undefined) return remembered;
    const [record] = await this.#store.read(this.#tenant, [stream]);
    if (record === undefined) return undefined;
    const read = { version: record.version, state: record.state as unknown as RunState };
    if (this.#known.size >= RUNS_REMEMBERED_MAX) this.#known.clear();
    this.#known.set(stream, read);
    return read;
  }
}

const RUNS_REMEMBERED_MAX = 10_000;

/** The row of a run that was given. */
export function runStream(id: string): string {
  return `run:${id}`;
}

function cancelledBy({ at, by, strength }: NonNullable<RunState['cancelled']>) {
  return { code: 'cancelled', by, at, ...(strength === undefined ? {} : { strength }) } as const;
}

function weakReference(name: string, generation: number): RunReference {
  return { id: `${name}/${generation}`, weak: true };
}

function firstRow(stream: string, expectedVersion: number, state: RunState): StreamWrite {
  return { stream, expectedVersion, events: [], state: state as unknown as Json };
}
