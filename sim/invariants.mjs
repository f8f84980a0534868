// The invariants of the domain, checked at each change of a row, each first byte and each arrival: from what is stored
// and from what the destinations hold, never from what the ledger says of itself.

import { createHash } from 'node:crypto';
import { ARRIVES_MS } from './destinations.mjs';

export class Violation extends Error {
  /** @param {string} invariant I1 to I15, as the domain numbers them */
  constructor(invariant, words) {
    super(`${invariant}: ${words}`);
    this.invariant = invariant;
  }
}

const WORKER = 'worker:';
const OPERATION = 'op:';

export class Invariants {
  /** id → { version, state, fixed, history: [{ at, version, event }], by } */
  operations = new Map();
  /** attempt → { operation, process, at, destination, tool } */
  #left = new Map();
  /** worker → when its last beat was stored */
  #beats = new Map();
  /** attempt → when its start was stored */
  #startedAt = new Map();
  /** destination → when attempts were started there */
  #starts = new Map();
  /** `key/sequence` → operation */
  #claims = new Map();
  /** What persons have said: review → [{ digest, kind, by }] */
  #said = new Map();
  #world;
  checks = 0;

  constructor(world) {
    this.#world = world;
  }

  get #now() {
    return this.#world.scheduler.now;
  }

  #hold(invariant, condition, words) {
    this.checks += 1;
    if (!condition) throw new Violation(invariant, words());
  }

  // ── What is stored ───────────────────────────────────────────────────────────────────────────────────────

  stored(change, { process }) {
    for (const write of change.writes) {
      if (write.stream.startsWith(WORKER)) this.#beats.set(write.stream.slice(WORKER.length), this.#now);
    }
    for (const write of change.writes) {
      if (write.stream.startsWith(OPERATION)) this.#changed(write, process);
    }
  }

  #changed({ stream, expectedVersion, state: text, events: texts, fixed: fixedText }, process) {
    const id = stream.slice(OPERATION.length);
    const before = this.operations.get(id);
    const events = texts.map((one) => JSON.parse(one));
    const state = JSON.parse(text);
    const fixed = before?.fixed ?? JSON.parse(fixedText);
    const version = (before?.version ?? 0) + 1;
    this.#hold(
      'I9',
      expectedVersion + 1 === version,
      () => `${id} was at version ${version - 1} when it was written from ${expectedVersion}`,
    );
    const stored = events.map((event) => ({ at: this.#now, version, event }));
    const after = { version, state, fixed, history: [...(before?.history ?? []), ...stored], by: process };
    const step = { id, before, after, events, process };
    if (before === undefined) this.#begun(step);
    if (events.some(({ type }) => type === 'reopened')) this.#isLatest(step);
    this.#attemptsFollow(step);
    this.#effectFollows(step);
    this.#effectIsTrue(step);
    this.#claimHolds(step);
    this.#decidedOnce(step);
    this.#isBounded(step);
    for (const { type, attempt } of events) {
      if (type !== 'attempt_started') continue;
      this.#startedAt.set(attempt.id, this.#now);
      this.#isAlone(step);
      this.#isWithin(step);
    }
    this.operations.set(id, after);
  }

  /** I2: one operation for each occurrence of an intent, and no second one beside a first that may still land. */
  #begun({ id, after: { fixed, state } }) {
    const { intentKey, sequence } = fixed;
    // What does not fit its tool takes no claim.
    if (state.why?.code === 'arguments') return;
    const claim = `${intentKey}/${sequence}`;
    const other = this.#claims.get(claim);
    this.#hold('I2', other === undefined, () => `${id} and ${other} are one intent, occurrence ${sequence}`);
    this.#claims.set(claim, id);
    if (sequence === 0) return;
    const earlier = this.operations.get(this.#claims.get(`${intentKey}/${sequence - 1}`) ?? '');
    if (earlier === undefined) return;
    this.#hold(
      'I2',
      earlier.state.stage === 'closed',
      () =>
        `${id} is occurrence ${sequence} while ${this.#claims.get(`${intentKey}/${sequence - 1}`)} is ${earlier.state.stage}`,
    );
    const isMade = earlier.state.effect === 'accepted' || earlier.state.effect === 'verified';
    this.#hold(
      'I2',
      fixed.repeat !== 'unique' || !isMade || state.review !== undefined,
      () => `${id} is made a second time without anybody having been asked`,
    );
  }

  /** I2: what has been followed by another occurrence is not asked for anew. */
  #isLatest({ id, after: { fixed } }) {
    const next = this.#claims.get(`${fixed.intentKey}/${fixed.sequence + 1}`);
    this.#hold('I2', next === undefined, () => `${id} is asked for anew, and ${next} has taken its place`);
  }

  /** I9: the list of attempts only grows, by events that say so. */
  #attemptsFollow({ id, before, after, events }) {
    const earlier = before?.state.attempts ?? [];
    const now = after.state.attempts;
    const started = events.filter(({ type }) => type === 'attempt_started').length;
    this.#hold(
      'I9',
      now.length === earlier.length + started && earlier.every((one, index) => one.id === now[index].id),
      () => `${id} has ${now.length} attempts after ${earlier.length} and ${started} starts`,
    );
    this.#hold(
      'I9',
      after.state.epoch >= (before?.state.epoch ?? 0),
      () => `the epoch of ${id} went back to ${after.state.epoch}`,
    );
    this.#hold(
      'I5',
      now.filter(({ open }) => open).length <= 1,
      () => `${id} has more than one open attempt`,
    );
  }

  /** I4: nothing but evidence changes what is known. */
  #effectFollows({ id, before, after, events }) {
    const { effect, stage, why, resolution } = after.state;
    const isBySystem = events.some(
      ({ type }) => type === 'evidence_recorded' || type === 'attempt_started' || type === 'proposed',
    );
    this.#hold(
      'I4',
      effect === before?.state.effect || isBySystem,
      () => `${id} became ${effect} by ${events.map(({ type }) => type).join(', ')}`,
    );
    const isClosedByPerson = why?.code === 'given_up' || resolution !== undefined;
    this.#hold(
      'I4',
      stage !== 'closed' || (effect !== 'unknown' && effect !== 'diverged') || isClosedByPerson,
      () => `${id} was closed as ${effect}, and no person has closed it`,
    );
  }

  /** I7: what is claimed is so, by the destination's own records. */
  #effectIsTrue({ id, before, after: { state, fixed } }) {
    if (state.effect === before?.state.effect) return;
    const made = this.#destination(fixed).recordsOf(id).length;
    switch (state.effect) {
      case 'accepted':
      case 'verified':
        this.#hold(
          'I7',
          made > 0,
          () => `${id} is called ${state.effect}, and ${fixed.destination} has none`,
        );
        return;
      case 'not_sent': {
        const left = state.attempts.find((attempt) => this.#left.has(attempt.id));
        this.#hold('I7', left === undefined, () => `${id} is called not sent, and ${left?.id} has left`);
        return;
      }
      case 'rejected':
      case 'absent':
        this.#hold(
          'I7',
          made === 0,
          () => `${id} is called ${state.effect}, and ${fixed.destination} has it`,
        );
        return;
      default:
    }
  }

  /** I6: what is out is ended by who sent it, or by somebody whose taking over is justified. */
  #claimHolds({ id, before, events, after, process }) {
    for (const { type, attempt: name } of events) {
      if (type === 'attempt_started') continue;
      const open = before?.state.attempts.find((one) => one.open);
      if (type === 'attempt_fenced') {
        const fenced = before?.state.attempts.find((one) => one.id === name);
        this.#hold('I6', fenced !== undefined, () => `${id} has no attempt ${name} to fence`);
        this.#mayBeTaken(id, fenced, process);
        return;
      }
      if (open === undefined || open.worker === process.worker) continue;
      const isStillOpen = after.state.attempts.some((one) => one.id === open.id && one.open);
      this.#hold(
        'I6',
        isStillOpen || events.some((event) => event.type === 'attempt_fenced'),
        () => `${process.name} ended ${open.id} of ${id}, which is another worker's`,
      );
    }
  }

  #mayBeTaken(id, { id: attempt, worker }, process) {
    const owner = this.#world.processOf(worker);
    if (owner === undefined || owner.isGone) return;
    const seen = Math.max(this.#beats.get(worker) ?? 0, this.#startedAt.get(attempt) ?? 0);
    const standsMs = this.#now - seen;
    this.#hold(
      'I6',
      standsMs >= this.#world.settings.leaseMs,
      () =>
        `${process.name} took ${attempt} of ${id} over from ${owner.name}, whose beat is ${Math.round(standsMs)} ms old`,
    );
  }

  /** I15 and I3: one decision for each review, and one that a person gave on exactly this digest. */
  #decidedOnce({ id, before, events, after: { fixed, history } }) {
    for (const event of events) {
      if (event.type !== 'approved' && event.type !== 'denied') continue;
      const { review } = before?.state ?? {};
      const opened = history.findLastIndex(({ event: { type } }) => type === 'review_opened');
      const decisions = history
        .slice(opened + 1)
        .filter(({ event: { type } }) => type === 'approved' || type === 'denied');
      this.#hold('I15', decisions.length === 1, () => `review ${review?.id} of ${id} was decided twice`);
      const said = this.#said.get(review?.id) ?? [];
      this.#hold(
        'I3',
        said.some(
          ({ by, digest, kind }) =>
            digest === fixed.digest && kind === event.decision.kind && by === event.decision.by,
        ),
        () => `${event.decision.by} has not ${event.type} the digest of ${id}`,
      );
    }
  }

  /** I14. */
  #isBounded({ id, after: { state } }) {
    const { attemptsMax } = this.#world.settings.bounds;
    const inRound = state.attempts.length - state.attemptsBefore;
    this.#hold('I14', inRound <= attemptsMax, () => `${id} has ${inRound} attempts in one round`);
  }

  /** I12: no second write of ours is out on a target while what became of a first is not settled. */
  #isAlone({ id, after: { fixed } }) {
    const locks = fixed.target?.locks ?? [];
    if (locks.length === 0) return;
    for (const [other, { state, fixed: its }] of this.operations) {
      if (other === id || !(its.target?.locks ?? []).some((lock) => locks.includes(lock))) continue;
      const isOpen = state.attempts.some(({ open }) => open);
      const isStated = state.resolution?.attempts === state.attempts.length;
      // A contradiction is nothing that may still land.
      const isUnsettled = state.attempts.length > 0 && state.effect === 'unknown';
      this.#hold(
        'I12',
        !isOpen && (!isUnsettled || state.stage === 'closed' || isStated),
        () => `${id} is sent to the target of ${other}, which is ${state.stage} and ${state.effect}`,
      );
    }
  }

  /** I14: no more is out at once, and no more leaves in a time, than its owner allows. */
  #isWithin({ id, after: { fixed } }) {
    const { concurrency = Number.POSITIVE_INFINITY, rate } = this.#destination(fixed).sending;
    const isOut = ([other, { state, fixed: its }]) =>
      other !== id && its.destination === fixed.destination && state.attempts.some(({ open }) => open);
    const out = [...this.operations].filter(isOut).length + 1;
    this.#hold(
      'I14',
      out <= concurrency,
      () => `${id} is started, and ${out} are out at ${fixed.destination}`,
    );
    if (rate === undefined) return;
    const starts = [...(this.#starts.get(fixed.destination) ?? []), this.#now];
    this.#starts.set(fixed.destination, starts);
    // Two windows may touch it, and one may have been taken of a third and be started late.
    const recent = starts.filter((at) => this.#now - at < rate.perMs).length;
    this.#hold(
      'I14',
      recent <= 3 * rate.writes,
      () => `${recent} writes were started at ${fixed.destination} within ${rate.perMs} ms`,
    );
  }

  // ── What leaves, and what arrives ────────────────────────────────────────────────────────────────────────

  firstByte(process, destination, { operation: id, attempt: name, payload, tool }) {
    const operation = this.operations.get(id);
    const attempt = operation?.state.attempts.find((one) => one.id === name);
    this.#hold('I1', attempt !== undefined, () => `${name} of ${id} leaves, and its start is not stored`);
    this.#hold('I5', !this.#left.has(name), () => `${name} of ${id} leaves a second time`);
    this.#hold(
      'I6',
      attempt.worker === process.worker && attempt.open && attempt.fenced !== true,
      () => `${process.name} lets ${name} of ${id} leave without the claim`,
    );
    const claimedMs = this.#now - process.claims.get(name);
    this.#hold(
      'I6',
      claimedMs <= this.#world.settings.bounds.sendByMs,
      () => `${name} of ${id} leaves ${Math.round(claimedMs)} ms after its claim was asked for`,
    );
    const { fixed, history, state } = operation;
    const sha256 = createHash('sha256').update(payload).digest('hex');
    this.#hold('I3', sha256 === fixed.payload.sha256, () => `${name} of ${id} is not what was decided on`);
    this.#isAllowed(id, state, fixed);
    const { ref } = JSON.parse(payload);
    const isStamped = destination.factsOf(tool).stamp !== undefined;
    this.#hold('I13', !isStamped || ref === id, () => `${name} of ${id} carries the reference ${ref}`);
    for (const earlier of state.attempts) {
      if (earlier.id !== name) this.#mayFollow({ id, history, earlier, name, destination, tool });
    }
    this.#left.set(name, { at: this.#now, process });
  }

  /** I3, the floor: what cannot be taken back is sent by a person's decision on its own digest. */
  #isAllowed(id, { review, rule }, { digest, toolClass }) {
    const isApproved = review?.decision?.kind === 'approved' && review.digest === digest;
    const isByRule = toolClass !== 'irreversible' && rule !== undefined && review === undefined;
    this.#hold('I3', isApproved || isByRule, () => `${id} leaves, and nobody has allowed it`);
  }

  /** I5, by what is true and not by what the ledger believes. */
  #mayFollow({ id, history, earlier, name, destination, tool }) {
    const left = this.#left.get(earlier.id);
    if (left === undefined) return;
    const order = history.findLastIndex(({ event }) => event.type === 'ordered_again');
    const started = history.findIndex(
      ({ event }) => event.type === 'attempt_started' && event.attempt.id === earlier.id,
    );
    if (order > started) return;
    const answers = destination.log.filter(({ attempt }) => attempt === earlier.id);
    const isRefused = answers.some(({ outcome }) => outcome === 'busy' || outcome === 'rejected');
    const sinceFirstMs = this.#now - Math.min(...this.#leftOf(history));
    const isForgiven = destination.forgives(sinceFirstMs);
    const isReopened = history.some(({ event }, index) => index > started && event.type === 'reopened');
    const isAbsent =
      destination.recordsOf(id).length === 0 &&
      this.#now - left.at > ARRIVES_MS &&
      (isReopened || destination.absenceCounts(tool));
    this.#hold(
      'I5',
      isRefused || isForgiven || isAbsent,
      () =>
        `${name} of ${id} leaves ${Math.round(this.#now - left.at)} ms after ${earlier.id} did, and nothing allows it`,
    );
  }

  #leftOf(history) {
    return history.flatMap(({ event }) =>
      event.type === 'attempt_started' ? (this.#left.get(event.attempt.id)?.at ?? []) : [],
    );
  }

  arrived(destination, { operation: id, attempt: name }) {
    const operation = this.operations.get(id);
    const isKnown = operation?.state.attempts.some((one) => one.id === name) === true;
    this.#hold('I1', isKnown, () => `${name} of ${id} arrives, and its start is not stored`);
    const entry = destination.log.at(-1);
    if (entry.outcome !== 'applied') return;
    const { effect } = operation.state;
    this.#hold(
      'I7',
      effect !== 'absent' && effect !== 'rejected' && effect !== 'not_sent',
      () => `${id} is called ${effect}, and lands at ${destination.name} by ${name}`,
    );
    const made = destination.recordsOf(id);
    const isDoubled = made.some(
      (one, index) => made.findIndex(({ attempt }) => attempt === one.attempt) !== index,
    );
    const isOrdered = operation.history.some(({ event }) => event.type === 'ordered_again');
    this.#hold(
      'I5',
      made.length <= 1 || isDoubled || isOrdered,
      () =>
        `${destination.name} has ${made.length} records of ${id}: ${made.map(({ attempt }) => attempt).join(', ')}`,
    );
  }

  // ── What persons and callers are told ────────────────────────────────────────────────────────────────────

  /** A person is about to say this. */
  said(review, words) {
    this.#said.set(review, [...(this.#said.get(review) ?? []), words]);
  }

  /** Of two who decide one review only one is told that it was theirs. */
  toldDecided(review, by) {
    const said = this.#said.get(review) ?? [];
    const other = said.find(({ isTold, by: who }) => isTold === true && who !== by);
    this.#hold(
      'I15',
      other === undefined,
      () => `${by} and ${other?.by} were both told that they had decided`,
    );
    const own = said.find((one) => one.by === by);
    if (own !== undefined) own.isTold = true;
  }

  /** A caller was answered; `mark` is this one try of its. */
  answered(mark, answer) {
    if (answer.kind === 'not_recorded') {
      const made = [...this.operations].find(([, { fixed }]) => fixed.references?.includes(mark));
      this.#hold(
        'I1',
        made === undefined,
        () => `a caller was told "not recorded", and ${made?.[0]} is there`,
      );
      return;
    }
    if (answer.kind === 'already_exists') {
      const { effect } = this.operations.get(answer.operation.id).state;
      const isThere = effect === 'accepted' || effect === 'verified';
      this.#hold(
        'I7',
        isThere,
        () => `a caller was told that ${answer.operation.id} exists; it is ${effect}`,
      );
      return;
    }
    if (answer.kind === 'reply' && answer.reply.kind === 'result') {
      const { id, destination } = answer.operation;
      const made = this.#world.destination(destination).recordsOf(id).length;
      this.#hold('I7', made > 0, () => `a caller was given a result of ${id}, of which there is none`);
    }
  }

  // ── The end ──────────────────────────────────────────────────────────────────────────────────────────────

  /** Operations that neither have settled nor wait for a person, once nothing is wrong any more. */
  restless() {
    return [...this.operations].flatMap(([id, { state }]) => (this.#rests(state, new Set([id])) ? [] : [id]));
  }

  #rests(state, seen) {
    const { stage, why } = state;
    if (['closed', 'parked', 'awaiting_approval', 'held'].includes(stage)) return true;
    const waitsFor = why?.code === 'waits_for_operation' || why?.code === 'waits_for_predecessor';
    if (stage !== 'ready' || !waitsFor || seen.has(why.operation)) return false;
    const other = this.operations.get(why.operation);
    if (other === undefined) return false;
    const isWithPerson = other.state.stage === 'parked';
    return (
      isWithPerson || (other.state.stage === 'ready' && this.#rests(other.state, seen.add(why.operation)))
    );
  }

  /** The claims of the end: what is called not to have happened has not. */
  end() {
    for (const [id, { state, fixed }] of this.operations) {
      const made = this.#destination(fixed).recordsOf(id).length;
      const isDenied = ['absent', 'rejected', 'not_sent'].includes(state.effect);
      this.#hold('I7', !isDenied || made === 0, () => `${id} ends as ${state.effect}, and there are ${made}`);
    }
    const restless = this.restless();
    this.#hold('liveness', restless.length === 0, () => {
      const [id] = restless;
      const { state } = this.operations.get(id);
      return `${restless.length} do not come to rest: ${id} is ${state.stage}, ${state.effect}, ${JSON.stringify(state.why)}`;
    });
  }

  #destination({ destination }) {
    return this.#world.destination(destination);
  }
}
