// The way between one process and one destination: what may be lost, late, doubled or refused, and when the first byte
// leaves. It stands in the place of an adapter.

import { ARRIVES_MS } from './destinations.mjs';

export class Wire {
  onLateReply;
  #world;
  #process;
  #destination;
  #isConnected = true;

  constructor(world, process, destination) {
    this.#world = world;
    this.#process = process;
    this.#destination = destination;
    this.name = destination.name;
  }

  isConnected() {
    return this.#isConnected;
  }

  scope() {
    return 'the one account';
  }

  connect() {
    return new Promise((resolve) => {
      this.#in(this.#world.random.between(1, 60), 'connect', () => {
        this.#isConnected = !this.#destination.isDown;
        if (this.#isConnected) resolve({ connected: true });
        else resolve({ connected: false, detail: 'connection refused' });
      });
    });
  }

  send(request) {
    const { faults, random } = this.#world;
    // Now and then a connection is waited for so long that it is too late.
    const waitMs =
      faults.isRough && random.chance(0.06) ? random.between(1_500, 3_500) : random.between(0, 25);
    return new Promise((resolve) => {
      this.#in(waitMs, 'leave', () => this.#leave(request, resolve));
    });
  }

  #leave(request, resolve) {
    const { faults, random } = this.#world;
    if (this.#destination.isDown && random.chance(0.6)) {
      this.#isConnected = false;
      this.#world.fired('refused');
      resolve({ left: 'no', proof: 'connection_refused', detail: 'connection refused' });
      return;
    }
    if (!request.mayLeave()) {
      this.#world.fired('too_late');
      resolve({ left: 'no', proof: 'refused_by_sender', detail: 'too late' });
      return;
    }
    this.#world.check(() => this.#world.invariants.firstByte(this.#process, this.#destination, request));
    let isOver = false;
    const report = (end) => {
      if (isOver) return false;
      isOver = true;
      resolve({ left: 'maybe', detail: end.ended, ...end });
      return true;
    };
    const deliveries = this.#deliveries(faults, random);
    for (const delayMs of deliveries) {
      this.#world.scheduler.in(delayMs, `arrive ${this.name}`, () => this.#arrive(request, report));
    }
    const isCut = deliveries.length === 0 && random.chance(0.5);
    if (isCut) this.#in(random.between(5, 800), 'cut', () => report({ ended: 'cut' }));
    this.#in(request.replyTimeoutMs, 'timeout', () => report({ ended: 'timeout' }));
  }

  /** When it arrives, each time that it does. */
  #deliveries(faults, random) {
    if (!faults.isRough) return [random.between(1, 60)];
    if (random.chance(faults.loss)) {
      this.#world.fired('lost_request');
      return [];
    }
    const late = () => {
      if (!random.chance(faults.late)) return random.between(1, 120);
      this.#world.fired('late_request');
      return random.between(1_000, ARRIVES_MS);
    };
    if (!random.chance(faults.double)) return [late()];
    this.#world.fired('doubled');
    return [late(), late()];
  }

  #arrive(request, report) {
    const { faults, random, scheduler } = this.#world;
    if (this.#destination.isDown) {
      this.#world.fired('lost_request');
      return;
    }
    const reply = this.#destination.handle(request, scheduler.now);
    this.#world.check(() => this.#world.invariants.arrived(this.#destination, request));
    if (faults.isRough && random.chance(faults.loss)) {
      this.#world.fired('lost_reply');
      if (random.chance(0.5)) this.#in(random.between(1, 100), 'cut', () => report({ ended: 'cut' }));
      return;
    }
    const isLate = faults.isRough && random.chance(faults.late);
    const delayMs = isLate ? random.between(1_000, 12_000) : random.between(1, 60);
    this.#in(delayMs, 'reply', () => {
      if (report({ ended: 'reply', reply })) return;
      this.#world.fired('late_reply');
      const { attempt, operation } = request;
      this.onLateReply?.({ attempt, operation, reply });
    });
  }

  ask({ tool, payload, timeoutMs }) {
    const { faults, random, scheduler } = this.#world;
    return new Promise((resolve) => {
      const give = (report) => resolve(report);
      this.#in(timeoutMs, 'no answer', () => give({ answered: false, detail: 'timeout' }));
      scheduler.in(random.between(1, 80), `ask ${this.name}`, () => {
        if (this.#destination.isDown || (faults.isRough && random.chance(faults.loss))) return;
        const reply = this.#destination.ask(tool, payload, scheduler.now);
        this.#in(random.between(1, 80), 'answer', () => give({ answered: true, reply }));
      });
    });
  }

  async close() {}

  #in(ms, what, fire) {
    return this.#world.scheduler.in(ms, `${what} ${this.name} of ${this.#process.name}`, fire, this.#process);
  }
}
