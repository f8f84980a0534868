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
    /** `reverted`: put back by a person, and looser in nothing. */
    readonly how: 'first' | 'no_looser' | 'passphrase' | 'reverted';
  };
  /** What was in force before an earlier one was put back: it comes into force again by a confirmation alone. */
  readonly setAside?: { readonly digest: string; readonly by: string; readonly at: number };
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

/** One change of what is in force, as it is kept. */
export interface PolicyChange {
  readonly at: number;
  readonly type: 'adopted' | 'waits_for_confirmation' | 'confirmed' | 'reverted';
  readonly by: string;
  readonly inForce: string;
  readonly waiting?: string;
  readonly loosens?: readonly string[];
}

/** The texts of a version that was in force or waited; `not_kept`: it was recorded without them. */
export type KeptVersion =
  | { readonly found: true; readonly digest: string; readonly sources: PolicySources }
  | { readonly found: false; readonly why: 'unknown' | 'not_kept' | 'in_force' };

export type Confirmation = 'confirmed' | 'nothing_waits' | 'digest_differs';

type PolicyEvent = Omit<PolicyChange, 'at'> & { readonly sources?: PolicySources };

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

  /** Every change of what is in force for a destination, the first one first. @throws {StoreFault} */
  async history(destination: string): Promise<readonly PolicyChange[]> {
    const { store, tenant } = this.#context;
    const events = await store.history(tenant, `policy:${destination}`);
    return events.map(({ event, recordedAt }) => ({ ...(event as unknown as PolicyChange), at: recordedAt }));
  }

  /** A version of which at least the first digits of the digest are known. @throws {StoreFault} */
  async version(destination: string, digest: string): Promise<KeptVersion> {
    const { store, tenant } = this.#context;
    const { state } = await this.#read(destination);
    if (state === undefined) return { found: false, why: 'unknown' };
    if (state.inForce.digest.startsWith(digest)) return { found: false, why: 'in_force' };
    let isKnown = false;
    for (const { event } of (await store.history(tenant, `policy:${destination}`)).toReversed()) {
      const { inForce, sources, waiting } = event as unknown as PolicyEvent;
      const brought = waiting ?? inForce;
      if (!brought.startsWith(digest)) continue;
      if (sources !== undefined) return { found: true, digest: brought, sources };
      isKnown = true;
    }
    return { found: false, why: isKnown ? 'not_kept' : 'unknown' };
  }

  /**
   * An earlier version is in force again, and the present one waits for a confirmation where it is given again.
   * @param how `passphrase` where it loosens something and the owner's passphrase was asked
   * @returns false where something else came into force meanwhile
   */
  async revert(
    destination: string,
    to: { readonly digest: string; readonly sources: PolicySources; readonly from: string },
    by: string,
    how: 'passphrase' | 'reverted',
  ): Promise<boolean> {
    for (;;) {
      const { state, version } = await this.#read(destination);
      if (state === undefined || state.inForce.digest !== to.from) return false;
      const at = this.#context.environment.now();
      const { digest, sources } = to;
      const next: PolicyState = {
        destination,
        inForce: { digest, sources, at, by, how },
        setAside: { digest: to.from, by, at },
      };
      if (await this.#write(next, version, 'reverted', by)) return true;
    }
  }

  #adopted(given: GivenPolicy, state: PolicyState | undefined): PolicyState {
    const { by, destination, digest, sources } = given;
    const present: PolicyVersion = { digest, sources, at: this.#context.environment.now() };
    if (state === undefined) return { destination, inForce: { ...present, by, how: 'first' } };
    const { inForce, waiting } = state;
    const { setAside } = state;
    if (digest === inForce.digest)
      return waiting === undefined ? state : { destination, inForce, ...(setAside && { setAside }) };
    const loosens =
      setAside?.digest === digest
        ? [`It was set aside by ${setAside.by}, who put an earlier one back.`]
        : given.loosens(inForce.sources);
    if (loosens.length === 0) return { destination, inForce: { ...present, by, how: 'no_looser' } };
    if (waiting?.digest === digest) return state;
    return { destination, inForce, ...(setAside && { setAside }), waiting: { ...present, loosens } };
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

  async #write(
    state: PolicyState,
    expectedVersion: number,
    type: PolicyChange['type'],
    by: string,
  ): Promise<boolean> {
    const { environment, store, tenant } = this.#context;
    const at = environment.now();
    const event = {
      type,
      by,
      inForce: state.inForce.digest,
      ...(state.waiting === undefined
        ? {}
        : { waiting: state.waiting.digest, loosens: state.waiting.loosens }),
      // Of what has been here before, the texts are with the event that brought it.
      ...(type === 'adopted' || type === 'waits_for_confirmation'
        ? { sources: (state.waiting ?? state.inForce).sources }
        : {}),
    };
    const write = {
      stream: `policy:${state.destination}`,
      expectedVersion,
      events: [event as unknown as Json],
      state: state as unknown as Json,
    };
    const [result] = await store.commit([{ tenant, at, writes: [write] }]);
    return result?.outcome === 'stored';
  }
}
