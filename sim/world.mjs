// One run: a seed gives a plan (who takes part, what goes wrong and how often), the plan is played, and everything is
// healed at the end, so that what does not come to rest then never will.

import { Agent, Nemesis, Persons } from './actors.mjs';
import { CLASSES, ModelDestination } from './destinations.mjs';
import { Invariants, Violation } from './invariants.mjs';
import { ModelPlace } from './model-store.mjs';
import { Process } from './process.mjs';
import { Random } from './random.mjs';
import { Scheduler } from './scheduler.mjs';

const STEPS_MAX = 400_000;
/** After the last fault. Longer than every bound of the settings, and than a clock is ever set back, together. */
const REST_MS = 4 * 60 * 60_000;
const LOOK_MS = 5_000;

const BOUNDS = { attemptsMax: 4, elapsedMaxMs: 300_000, lookUpElapsedMaxMs: 90_000, sendByMs: 2_000 };

/** What a seed says of a run, as plain data, so that it can be made smaller. */
export function planOf(seed, { clocks = false } = {}) {
  const random = new Random(`plan ${seed}`);
  const names = Object.keys(CLASSES);
  const destinations = names.filter(() => random.chance(0.4));
  const often = () => random.between(6_000, 40_000);
  const nemesis = {};
  for (const what of ['kill', 'pause', 'destinationDown', 'storeDown']) {
    if (random.chance(0.6)) nemesis[what] = often();
  }
  if (random.chance(0.3)) nemesis.tamper = often();
  if (clocks) nemesis.clock = often();
  return {
    seed,
    // By how much the clocks of two machines differ, without anybody setting them.
    skewMs: clocks ? 2_000 : 400,
    processes: random.between(1, 3),
    agents: random.between(1, 3),
    destinations: destinations.length === 0 ? [random.pick(names)] : destinations,
    runs: random.chance(0.5) ? 'weak' : 'given',
    busyMs: random.between(20_000, 90_000),
    wire: {
      loss: random.pick([0, 0.05, 0.2]),
      late: random.pick([0, 0.05, 0.15]),
      double: random.pick([0, 0.05]),
    },
    store: random.pick([0, 0.01, 0.04]),
    // How much of its owner's may be out at once, and leave in a time.
    sending: random.chance(0.25) ? sendingOf(random) : {},
    nemesis,
  };
}

function sendingOf(random) {
  if (random.chance(0.5)) return { concurrency: random.between(1, 2) };
  return { rate: { writes: 2, perMs: 10_000 } };
}

export class World {
  scheduler;
  random;
  place = new ModelPlace();
  processes = [];
  /** How often each fault came about: a run in which none did shows nothing. */
  faultsFired = new Map();
  reports = [];
  faults;
  #violation;
  #processNames = 0;

  constructor(build, plan, options = {}) {
    this.build = build;
    this.plan = plan;
    this.random = this.randomFor('world');
    this.scheduler = new Scheduler(this.randomFor('ties'));
    this.scheduler.onTrace = options.onTrace;
    this.settings = {
      ...build.settings,
      bounds: BOUNDS,
      approvalLifetimeMs: 120_000,
      replyTimeoutMs: 5_000,
      callerWaitMs: 5_000,
      lookUpTimeoutMs: 3_000,
      ...options.settings,
    };
    this.faults = { isRough: true, isBusy: true, isStoreDown: false, ...plan.wire };
    this.invariants = new Invariants(this);
    this.place.onStored = (change, handle) => this.check(() => this.invariants.stored(change, handle));
    for (const bug of options.ignores ?? []) this.place.ignores.add(bug);
    this.destinations = plan.destinations.map(
      (name) => new ModelDestination(name, this.randomFor(`destination ${name}`), plan.sending),
    );
    this.agents = Array.from({ length: plan.agents }, (_, index) => new Agent(this, String(index + 1)));
  }

  randomFor(name) {
    return new Random(`${this.plan.seed} ${name}`);
  }

  destination(name) {
    return this.destinations.find((one) => one.name === name);
  }

  processOf(worker) {
    return this.processes.find((process) => process.worker === worker);
  }

  aliveProcess(random) {
    const alive = this.processes.filter(({ isGone }) => !isGone);
    return alive.length === 0 ? undefined : random.pick(alive);
  }

  startProcess() {
    this.#processNames += 1;
    const process = new Process(this, `p${this.#processNames}`);
    this.processes.push(process);
    process.start();
  }

  fired(fault) {
    this.faultsFired.set(fault, (this.faultsFired.get(fault) ?? 0) + 1);
  }

  /** What becomes of a transaction now; `undefined` where it is stored and told so. */
  storeFault() {
    if (this.faults.isStoreDown) return 'not_stored';
    if (!this.faults.isRough || !this.random.chance(this.plan.store)) return undefined;
    const fault = this.random.pick(['not_stored', 'ghost', 'unknown']);
    this.fired(`store_${fault}`);
    return fault;
  }

  /** The first thing that is wrong ends the run: what follows from it is no news. */
  check(look) {
    try {
      look();
    } catch (cause) {
      this.#violation ??= cause;
    }
  }

  noteAnswer(mark, answer) {
    this.scheduler.note(`answered ${mark} ${answer.kind}`);
    this.check(() => this.invariants.answered(mark, answer));
  }

  /** What the engine reports is a part of the trace; an assertion in it is a bug. */
  reported(process, message) {
    this.scheduler.note(`${process.name} reports ${message}`);
    if (message.includes('Assertion')) this.crashed(process, new Error(message));
  }

  crashed(process, cause) {
    if (process.isGone || this.#violation !== undefined) return;
    this.#violation =
      cause instanceof Violation
        ? cause
        : new Violation('assertion', `${process.name}: ${cause?.stack ?? cause}`);
  }

  async run() {
    const { plan, scheduler } = this;
    for (let count = 0; count < plan.processes; count += 1) this.startProcess();
    for (const agent of this.agents) agent.start();
    new Persons(this).start();
    new Nemesis(this).start();
    await this.#until(() => scheduler.now >= plan.busyMs);
    this.#heal();
    const healedAt = scheduler.now;
    let lookAt = healedAt;
    await this.#until(() => {
      if (scheduler.now < lookAt) return false;
      lookAt = scheduler.now + LOOK_MS;
      return scheduler.now > healedAt + REST_MS || (this.#isOver() && scheduler.now > healedAt + 2 * LOOK_MS);
    });
    if (this.#violation === undefined) {
      try {
        this.invariants.end();
        this.#everybodyIsAnswered();
      } catch (cause) {
        this.#violation = cause;
      }
    }
    const seconds = Math.round(scheduler.now / 1_000);
    return {
      plan,
      violation: this.#violation,
      steps: scheduler.steps,
      seconds,
      trace: scheduler.trace,
      operations: this.invariants.operations.size,
      checks: this.invariants.checks,
      fired: this.faultsFired,
    };
  }

  #isOver() {
    return this.invariants.restless().length === 0 && this.agents.every(({ open }) => open === 0);
  }

  #everybodyIsAnswered() {
    const open = this.agents.reduce((sum, agent) => sum + agent.open, 0);
    if (open > 0) throw new Violation('liveness', `${open} callers are never answered`);
  }

  #until(isDone) {
    return this.scheduler.run(() => this.#violation !== undefined || isDone(), STEPS_MAX);
  }

  #heal() {
    Object.assign(this.faults, { isRough: false, isBusy: false, isStoreDown: false });
    for (const destination of this.destinations) destination.isDown = false;
    for (const process of this.processes) process.pausedUntil = 0;
    // A kill whose restart is still to come: with nobody there nothing could come to rest.
    if (this.aliveProcess(this.random) === undefined) this.startProcess();
  }
}

export async function playSeed(build, seed, options = {}) {
  return new World(build, options.plan ?? planOf(seed, options), options).run();
}
