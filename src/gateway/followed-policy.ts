// Clients that are connected for days: a configuration that has come into force since counts for them too, where it
// loosens nothing of what counted for them. What is looser counts for clients that come then.

import { performance } from 'node:perf_hooks';
import { loosenedBy } from '../contracts/policy-change.ts';
import type { Policies } from '../engine/policies.ts';
import { setupOf } from './policy-in-force.ts';
import type { ServerFacts } from './tool-facts.ts';

/** For how long rules may count that are not in force any more. */
const LOOK_EACH_MS = 1_000;
/** A read passes also while the ledger cannot be read: longer than this no call waits for it. */
const PATIENCE_MS = 100;

export class FollowedPolicy {
  readonly #policies: Policies;
  readonly #facts: ServerFacts;
  readonly #destination: string;
  readonly #report: (message: string) => void;
  #looking: Promise<void> | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** The digest of what was in force when it was looked at last. */
  #known: string | undefined;

  constructor(parts: {
    readonly policies: Policies;
    readonly facts: ServerFacts;
    readonly destination: string;
    readonly report: (message: string) => void;
  }) {
    this.#policies = parts.policies;
    this.#facts = parts.facts;
    this.#destination = parts.destination;
    this.#report = parts.report;
  }

  /** `undefined` where it was looked at a moment ago. Never rejects: what cannot be read changes nothing. */
  look(): Promise<void> | undefined {
    if (this.#looking !== undefined) return patiently(this.#looking);
    if (performance.now() - this.#lookedAt < LOOK_EACH_MS) return undefined;
    this.#looking = this.#look()
      .catch(() => {})
      .finally(() => {
        this.#lookedAt = performance.now();
        this.#looking = undefined;
      });
    return patiently(this.#looking);
  }

  async #look(): Promise<void> {
    const state = await this.#policies.of(this.#destination);
    if (state === undefined || state.inForce.digest === this.#known) return;
    this.#known = state.inForce.digest;
    const next = setupOf(state.inForce.sources);
    // A client is told which one counts as it comes: only what is another one is news.
    if (!next.ok || this.#facts.isUnder(next) || loosenedBy(next, this.#facts.rules).length > 0) return;
    this.#facts.follow(next);
    this.#report(
      `The configuration of ${this.#destination} that has come into force since counts here as well, except its limits.`,
    );
  }
}

function patiently(looking: Promise<void>): Promise<void> {
  return Promise.race([
    looking,
    new Promise<void>((resolve) => {
      setTimeout(resolve, PATIENCE_MS).unref();
    }),
  ]);
}
