// Which configuration of a destination is in force: one that loosens anything waits for its owner's confirmation, and
// the earlier one counts until then (D9).

import type { Json } from '../store/port.ts';
import type { EngineContext } from './context.ts';

/** The texts that a configuration is made of, as its files were read. */
export interface PolicySources {
  readonly text: string;
  /** The contracts and bindings that it names: name → text. */
  readonly files: { readonly [name: string]: string };
}

export interface PolicyVersion {
  /** SHA-256 over the sources. */
  readonly digest: string;
  readonly sources: PolicySources;
  readonly at: number;
}

export interface PolicyState {
  readonly destination: string;
  readonly inForce: PolicyVersion & {
    readonly by: string;
    readonly how: 'first' | 'no_looser' | 'passphrase';
  };
  /** What is written in the files now, and what of it loosens the one in force, in words. */
  readonly waiting?: PolicyVersion & { readonly loosens: readonly string[] };
}

export interface GivenPolicy {
  readonly destination: string;
  readonly digest: string;
  readonly sources: PolicySources;
  readonly by: string;
  /** What this one would loosen, against the one in force. */
  readonly loosens: (inForce: PolicySources) => readonly string[];
}

export type Confirmation = 'confirmed' | 'nothing_waits' | 'digest_differs';

const LISTED_MAX = 1_000;

export class Policies {
  readonly #context: EngineContext;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  async all(): Promise<readonly PolicyState[]> {
    const { store, tenant } = this.#context;
    const records = await store.streams({ tenant, kind: 'policy', limit: LISTED_MAX });
    return records.map((record) => record.state as unknown as PolicyState);
  }

  async of(destination: string): Promise<PolicyState | undefined> {
    return (await this.#read(destination)).state;
  }

  /** The state in which the given configuration is in force, or waits. @throws {StoreFault} */
  async adopt(given: GivenPolicy): Promise<PolicyState> {
    for (;;) {
      const { state, version } = await this.#read(given.destination);
      const next = this.#adopted(given, state);
      if (next === state) return next;
      const type = next.waiting === undefined ? 'adopted' : 'waits_for_confirmation';
      if (await this.#write(next, version, type, given.by)) return next;
    }
  }

  #adopted(given: GivenPolicy, state: PolicyState | undefined): PolicyState {
    const { by, destination, digest, sources } = given;
    const present: PolicyVersion = { digest, sources, at: this.#context.environment.now() };
    if (state === undefined) return { destination, inForce: { ...present, by, how: 'first' } };
    const { inForce, waiting } = state;
    if (digest === inForce.digest) return waiting === undefined ? state : { destination, inForce };
    const loosens = given.loosens(inForce.sources);
    if (loosens.length === 0) return { destination, inForce: { ...present, by, how: 'no_looser' } };
    return waiting?.digest === digest ? state : { destination, inForce, waiting: { ...present, loosens } };
  }

  /** By a person whose passphrase was asked; for exactly the version that was shown. @throws {StoreFault} */
  async confirm(destination: string, digest: string, by: string): Promise<Confirmation> {
    for (;;) {
      const { state, version } = await this.#read(destination);
      if (state?.waiting === undefined) return 'nothing_waits';
      const { loosens: _words, ...waiting } = state.waiting;
      if (digest === '' || !waiting.digest.startsWith(digest)) return 'digest_differs';
      const at = this.#context.environment.now();
      const next: PolicyState = { destination, inForce: { ...waiting, at, by, how: 'passphrase' } };
      if (await this.#write(next, version, 'confirmed', by)) return 'confirmed';
    }
  }

  async #read(
    destination: string,
  ): Promise<{ readonly state: PolicyState | undefined; readonly version: number }> {
    const [record] = await this.#context.store.read(this.#context.tenant, [`policy:${destination}`]);
    return { state: record?.state as unknown as PolicyState | undefined, version: record?.version ?? 0 };
  }

  async #write(state: PolicyState, expectedVersion: number, type: string, by: string): Promise<boolean> {
    const { environment, store, tenant } = this.#context;
    const at = environment.now();
    const event = {
      type,
      by,
      inForce: state.inForce.digest,
      ...(state.waiting === undefined
        ? {}
        : { waiting: state.waiting.digest, loosens: state.waiting.loosens }),
    };
    const write = {
      stream: `policy:${state.destination}`,
      expectedVersion,
      events: [event as Json],
      state: state as unknown as Json,
    };
    const [result] = await store.commit([{ tenant, at, writes: [write] }]);
    return result?.outcome === 'stored';
  }
}
