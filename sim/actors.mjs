// Who acts: agents that call and call again, persons who decide and state, and what goes wrong by itself.

import { TENANT } from './process.mjs';

const TITLES = ['A', 'B', 'C'];
const PERSONS = ['mara', 'luis'];

/** An agent works on its intents one after the other; what it does not hear of it asks again, as agents do. */
export class Agent {
  #world;
  #random;
  #name;
  #calls = 0;
  #tries = 0;
  #open = new Set();

  constructor(world, name) {
    this.#world = world;
    this.#name = name;
    this.#random = world.randomFor(`agent ${name}`);
  }

  start() {
    this.#next();
  }

  /** Calls that are not answered, of processes that could still answer them. */
  get open() {
    return [...this.#open].filter(({ isGone }) => !isGone).length;
  }

  #next() {
    this.#later(this.#random.between(50, 4_000), () => this.#act());
  }

  #act() {
    if (!this.#world.faults.isBusy) return;
    const random = this.#random;
    const destination = random.pick(this.#world.destinations);
    const tool = random.pick(destination.tools);
    this.#calls += 1;
    const call = {
      destination: destination.name,
      tool,
      arguments: {
        title: random.pick(TITLES),
        note: random.chance(0.2) ? 'in other words' : 'please',
        ...(tool === 'set' ? { value: random.pick(['red', 'blue']) } : {}),
        // A model that makes up a reference must not have it sent.
        ...(random.chance(0.1) ? { ref: 'made up' } : {}),
      },
      requester: `agent ${this.#name.at(0)}`,
      ...(this.#world.plan.runs === 'weak' ? {} : { run: this.#run() }),
      replays: [`${this.#name}/${this.#calls}`],
    };
    this.#try(call, random.between(0, 2));
    if (random.chance(0.35)) this.#twin(call);
    this.#next();
  }

  /** At the same time, as parallel branches do; now and then in other words. */
  #twin(call) {
    const note = this.#random.chance(0.5) ? 'in other words' : call.arguments.note;
    const replays = [`${call.replays[0]}b`];
    this.#try({ ...call, arguments: { ...call.arguments, note }, replays }, 0);
  }

  #run() {
    const run = { id: `run ${this.#random.between(1, 2)}` };
    if (!this.#random.chance(0.3)) return run;
    return { ...run, step: 'change', ...(this.#random.chance(0.5) ? { single: true } : {}) };
  }

  /** @param triesLeft how often the transport calls again, with the same call id, when it hears nothing */
  #try(call, triesLeft) {
    const process = this.#world.aliveProcess(this.#random);
    if (process === undefined) return;
    const abort = this.#random.chance(0.06) ? new AbortController() : undefined;
    this.#tries += 1;
    const mark = `try ${this.#name}/${this.#tries}`;
    let isAnswered = false;
    const waiting = {
      get isGone() {
        return process.isGone;
      },
    };
    this.#open.add(waiting);
    process.ledger
      .write({ ...call, references: [mark], ...(abort === undefined ? {} : { signal: abort.signal }) })
      .then((answer) => {
        isAnswered = true;
        this.#open.delete(waiting);
        this.#world.noteAnswer(mark, answer);
      })
      .catch((cause) => this.#world.crashed(process, cause));
    if (abort !== undefined) this.#later(this.#random.between(10, 6_000), () => abort.abort());
    this.#later(this.#random.between(3_000, 30_000), () => {
      if (isAnswered || !this.#world.faults.isBusy) return;
      if (triesLeft > 0) this.#try(call, triesLeft - 1);
    });
  }

  #later(ms, act) {
    this.#world.scheduler.in(ms, `agent ${this.#name}`, act);
  }
}

/** Persons look at what waits for them, decide, and state what they have seen at the destination. */
export class Persons {
  #world;
  #random;

  constructor(world) {
    this.#world = world;
    this.#random = world.randomFor('persons');
  }

  start() {
    this.#world.scheduler.in(this.#random.between(500, 5_000), 'person', () => {
      if (!this.#world.faults.isBusy) return;
      this.#act();
      this.start();
    });
  }

  #act() {
    const process = this.#world.aliveProcess(this.#random);
    if (process === undefined) return;
    const waiting = [...this.#world.invariants.operations].filter(([, { state }]) =>
      ['awaiting_approval', 'parked'].includes(state.stage),
    );
    if (waiting.length === 0) return;
    const [id, operation] = this.#random.pick(waiting);
    const act =
      operation.state.stage === 'parked'
        ? this.#reconcile(process, id, operation)
        : this.#decide(process, id, operation);
    act?.catch((cause) => {
      // A store that is down is told to the person.
      if (cause?.name !== 'StoreFault') this.#world.crashed(process, cause);
    });
  }

  #decide(process, id, { fixed, state: { review } }) {
    const random = this.#random;
    const kind = random.chance(0.75) ? 'approved' : 'denied';
    const others = [...this.#world.invariants.operations.values()];
    // Now and then somebody decides on what another page showed.
    const digest = random.chance(0.15) ? random.pick(others).fixed.digest : fixed.digest;
    const both = random.chance(0.3) ? PERSONS : [random.pick(PERSONS)];
    return Promise.all(
      both.map(async (by) => {
        const own =
          both.length > 1 && by === PERSONS[1] ? (this.#world.aliveProcess(random) ?? process) : process;
        this.#world.invariants.said(review.id, { by, kind, digest });
        const result = await own.ledger.decideReview({
          operation: id,
          review: review.id,
          digest,
          kind,
          by,
          strength: 'passphrase',
        });
        if (result.decided) this.#world.check(() => this.#world.invariants.toldDecided(review.id, by));
      }),
    );
  }

  #reconcile({ ledger }, id, { version, state, fixed }) {
    const random = this.#random;
    const actor = { by: random.pick(PERSONS), strength: 'passphrase' };
    const targets = [{ operation: id, version }];
    const made = this.#world.destination(fixed.destination).recordsOf(id).length > 0;
    const acts = [
      () => ledger.queueActs.lookUp(targets, actor),
      () => ledger.queueActs.close(targets, actor),
      () => ledger.queueActs.sendAgain(targets, actor),
      () => {
        const resolution = made ? 'stated_happened' : 'stated_not_happened';
        return ledger.queueActs.state(targets, { resolution, looked: 'in the list' }, actor);
      },
    ];
    // Only what is not established needs a statement.
    return random.pick(state.effect === 'unknown' ? [...acts, acts[3]] : acts)();
  }
}

/** What goes wrong by itself, each as often as the plan of the seed says. */
export class Nemesis {
  #world;
  #random;

  constructor(world) {
    this.#world = world;
    this.#random = world.randomFor('nemesis');
  }

  start() {
    const { plan } = this.#world;
    for (const [what, everyMs] of Object.entries(plan.nemesis)) this.#again(what, everyMs);
  }

  #again(what, everyMs) {
    const ms = this.#random.between(everyMs / 4, everyMs * 2);
    this.#world.scheduler.in(ms, `nemesis ${what}`, () => {
      if (!this.#world.faults.isRough) return;
      this.#world.fired(what);
      this[what]();
      this.#again(what, everyMs);
    });
  }

  kill() {
    const world = this.#world;
    const process = world.aliveProcess(this.#random);
    if (process === undefined) return;
    process.isGone = true;
    world.scheduler.in(this.#random.between(200, 20_000), 'restart', () => world.startProcess());
  }

  /** Frozen by the operating system, now and then for longer than its claims last. */
  pause() {
    const process = this.#world.aliveProcess(this.#random);
    const ms = this.#random.chance(0.4)
      ? this.#random.between(10_000, 30_000)
      : this.#random.between(100, 5_000);
    if (process !== undefined)
      process.pausedUntil = Math.max(process.pausedUntil, this.#world.scheduler.now + ms);
  }

  destinationDown() {
    const destination = this.#random.pick(this.#world.destinations);
    destination.isDown = true;
    this.#world.scheduler.in(this.#random.between(500, 40_000), 'destination up', () => {
      destination.isDown = false;
    });
  }

  storeDown() {
    const { faults, scheduler } = this.#world;
    faults.isStoreDown = true;
    scheduler.in(this.#random.between(100, 12_000), 'store up', () => {
      faults.isStoreDown = false;
    });
  }

  /** Somebody sets a clock, by seconds or by hours. */
  clock() {
    const process = this.#world.aliveProcess(this.#random);
    if (process === undefined) return;
    process.wallOffsetMs = this.#random.pick([-3_600_000, -60_000, -1_000, 1_000, 60_000, 3_600_000]);
  }

  /** A payload that lies in the store is altered: it must not be sent. */
  tamper() {
    const documents = [...this.#world.place.tenant(TENANT).documents.values()];
    const payloads = documents.filter(({ label }) => label === 'payload');
    if (payloads.length === 0) return;
    const document = this.#random.pick(payloads);
    const text = Buffer.from(document.bytes).toString('utf8');
    document.bytes = new Uint8Array(Buffer.from(text.replace('please', 'at once'), 'utf8'));
  }
}
