// Which processes hold a destination, so that work which is ready can be told to wait for a gateway where none does.
//
// A row for each destination, written as a process begins and as it ends in order. One that was killed is missed by
// the operating system's word alone, so that only holders of this machine count: elsewhere nobody can be asked.

import type { Operation } from '../core/operation.ts';
import { whyOf } from '../core/stop.ts';
import { type Json, StoreFault } from '../store/port.ts';
import type { EngineContext } from './context.ts';
import { hostIdentity, isRunning, ownProcess } from './presence.ts';
import type { StopsInForce } from './stops-in-force.ts';

interface Holder {
  readonly worker: string;
  readonly host: string;
  readonly process: number;
}

interface HoldersState {
  readonly holders: readonly Holder[];
}

/** Of other machines, whose processes nobody here can ask after, so many are kept. */
const HOLDERS_MAX = 64;

export class Holders {
  readonly #context: EngineContext;
  readonly #host = hostIdentity();

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /** This process can send to its destinations from now on. @throws {StoreFault} */
  async enter(): Promise<void> {
    const { worker } = this.#context;
    const own: Holder = { worker, host: this.#host, process: ownProcess() };
    await this.#forEach((holders) =>
      [...holders.filter((each) => !this.#isGone(each)), own].slice(-HOLDERS_MAX),
    );
  }

  /** It will not send any more. A store that fails leaves a name that the operating system will deny. */
  async leave(): Promise<void> {
    const { worker } = this.#context;
    try {
      await this.#forEach((holders) => holders.filter((each) => each.worker !== worker));
    } catch (cause) {
      if (!(cause instanceof StoreFault)) throw cause;
    }
  }

  /** Whether a process that runs on this machine can send to the destination. */
  async isHeld(destination: string): Promise<boolean> {
    const { destinations, store, tenant } = this.#context;
    if (destinations.has(destination)) return true;
    const [record] = await store.read(tenant, [streamOf(destination)]);
    return holdersOf(record?.state).some(({ host, process: id }) => host === this.#host && isRunning(id));
  }

  #isGone({ host, process: id }: Holder): boolean {
    return host === this.#host && !isRunning(id);
  }

  async #forEach(change: (holders: readonly Holder[]) => readonly Holder[]): Promise<void> {
    for (const destination of this.#context.destinations.keys())
      await this.#change(streamOf(destination), change);
  }

  async #change(stream: string, change: (holders: readonly Holder[]) => readonly Holder[]): Promise<void> {
    const { environment, store, tenant } = this.#context;
    for (;;) {
      const [record] = await store.read(tenant, [stream]);
      const state: HoldersState = { holders: change(holdersOf(record?.state)) };
      const write = {
        stream,
        expectedVersion: record?.version ?? 0,
        events: [],
        state: state as unknown as Json,
      };
      const [result] = await store.commit([{ tenant, at: environment.now(), writes: [write] }]);
      if (result?.outcome === 'stored') return;
    }
  }
}

/**
 * An operation with the reason for which it waits now. A stop, and that no gateway runs, is seen, not recorded: what has
 * ended cannot write it down, and the next one to start makes it untrue.
 */
export async function asItWaits(
  operation: Operation,
  stops: StopsInForce,
  isHeld: (destination: string) => boolean | Promise<boolean>,
): Promise<Operation> {
  if (operation.stage !== 'ready' && operation.stage !== 'checking') return operation;
  const stopped = operation.stage === 'ready' ? stops.over(operation) : undefined;
  if (stopped !== undefined) return { ...operation, why: whyOf(stopped) };
  return (await isHeld(operation.destination))
    ? operation
    : { ...operation, why: { code: 'waits_for_gateway' } };
}

function streamOf(destination: string): string {
  return `gateway:${destination}`;
}

function holdersOf(state: Json | undefined): readonly Holder[] {
  return (state as HoldersState | undefined)?.holders ?? [];
}
