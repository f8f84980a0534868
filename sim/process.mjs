// One simulated process: the real ledger with an environment, a store handle and wires of the model. When it is killed
// nothing of it happens any more; what had left it goes on.

import { ModelHandle } from './model-store.mjs';
import { Wire } from './wire.mjs';

/** 2026-06-01T00:00:00Z, some hours after which a day of weak runs cannot end within a run of this. */
const EPOCH = 1_780_272_000_000;
const SECRET = new Uint8Array(32).fill(7);
export const TENANT = 'local';

export class Process {
  isGone = false;
  pausedUntil = 0;
  /** What its wall clock is off by; it may jump. */
  wallOffsetMs = 0;
  /** When the commit that started an attempt was asked for first, by attempt: the claim began no later. */
  claims = new Map();
  #world;
  #random;

  constructor(world, name) {
    this.#world = world;
    this.name = name;
    this.#random = world.randomFor(`process ${name}`);
    this.wallOffsetMs = world.random.between(-world.plan.skewMs, world.plan.skewMs);
    const { build, destinations } = world;
    const environment = this.#environment();
    this.worker = build.Ledger.newWorker({ environment });
    const wires = destinations.map((destination) => [destination.name, new Wire(world, this, destination)]);
    const store = new build.ReopeningStore(() => this.#open());
    this.ledger = new build.Ledger({
      store,
      stops: new build.StopsInForce(store, TENANT),
      tenant: TENANT,
      whenReady: () => undefined,
      secret: SECRET,
      environment,
      destinations: new Map(wires),
      factsFor: (destination, tool) => world.destination(destination)?.factsOf(tool),
      refreshFacts: async () => {},
      settings: world.settings,
      reached: () => {},
      worker: this.worker,
      waiters: new build.Waiters(),
      answersOut: build.noAnswersOut(),
      report: (message) => world.reported(this, message),
    });
  }

  start() {
    this.ledger.start().catch((cause) => this.#world.crashed(this, cause));
  }

  wall() {
    return Math.floor(EPOCH + this.#world.scheduler.now + this.wallOffsetMs);
  }

  #environment() {
    const world = this.#world;
    return {
      now: () => this.wall(),
      monotonic: () => world.scheduler.now,
      random: (bytes) => this.#random.bytes(bytes),
      after: (ms, callback) =>
        world.scheduler.in(ms + this.#slackMs(ms), `timer ${this.name}`, callback, this),
    };
  }

  /** Timers are late, on a busy machine very much so: that is also what keeps idle ticks few. */
  #slackMs(ms) {
    if (ms > 100) return this.#world.random.next() * 50;
    return this.#world.random.next() * (this.#world.faults.isRough ? 400 : 1_500) * (ms === 100 ? 1 : 0.05);
  }

  async #open() {
    const { build, place, random, scheduler } = this.#world;
    await new Promise((resolve) => {
      scheduler.in(random.between(1, 20), `open ${this.name}`, resolve, this);
    });
    const handle = new ModelHandle(place, build.storePort, this.#delays());
    handle.process = this;
    const { commit } = handle;
    handle.commit = (changes) => {
      this.#noteClaims(changes);
      return commit.call(handle, changes);
    };
    return handle;
  }

  #noteClaims(changes) {
    for (const { writes } of changes) {
      for (const { events } of writes) {
        for (const { type, attempt } of events) {
          if (type !== 'attempt_started' || this.claims.has(attempt.id)) continue;
          this.claims.set(attempt.id, this.#world.scheduler.now);
        }
      }
    }
  }

  #delays() {
    const world = this.#world;
    const { random, scheduler } = world;
    return {
      transaction: (fire) => {
        const isSlow = world.faults.isRough && random.chance(0.01);
        const ms = isSlow ? random.between(200, 2_500) : random.between(0, 12);
        // On its way to a server already, or still here when the process is killed.
        const owner = random.chance(0.5) ? this : undefined;
        scheduler.in(ms, `commit ${this.name}`, fire, owner);
      },
      answer: (give) => {
        scheduler.in(random.between(0, 5), `committed ${this.name}`, give, this);
      },
      reading: (take) => {
        scheduler.in(
          random.between(0, 6),
          `read ${this.name}`,
          () => {
            const answer = take();
            if (random.chance(0.85)) answer();
            else scheduler.in(random.between(1, 40), `told ${this.name}`, answer, this);
          },
          this,
        );
      },
      fault: () => world.storeFault(),
      readingFault: () => world.faults.isStoreDown,
    };
  }
}
