// What four destinations lose while a fifth is down: their throughput through one ledger, before and while the fifth
// hangs and refuses connections, as ratios within a round. Writes for the fifth go on coming in all of it.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { openHttpDestination, openLedger } from '../dist/index.js';
import { percentile } from './figures.mjs';
import { gate } from './gates.mjs';
import { nextKey } from './payloads.mjs';
import { FOREIGN_CORES_MAX, ratio, runRounds, summarise, warmUp } from './rounds.mjs';

const RATIO_MIN = 0.8;
const CLEAN_ROUNDS_MIN = 3;
const HEALTHY = 4;
/** `again` is `up` once more: how far it is from 1 is what the machine did meanwhile. */
const LEGS = ['up', 'hanging', 'refusing', 'again'];
/** Each of them writes, waits for no outcome, and writes again: what is caught in the outage piles up. */
const CALLERS_OF_THE_FIFTH = 4;
const PAUSE_MS = 40;
const DRAINED_WITHIN_MS = 90_000;
const EVIDENCE = { grade: 'source', source: 'bench/down-destination.mjs' };

const TICKET = {
  id: 'ticket.create',
  match: ['POST /tickets'],
  effect: 'create',
  stamp: { argument: 'reference' },
  http: { method: 'POST', path: '/tickets', body: { title: '{title}', reference: '{$stamp}' } },
  acknowledgement: { record: { from: 'json', path: '/id' } },
  completion: { kind: 'synchronous' },
  guards: [],
  lookups: [
    {
      by: 'client_reference',
      http: { path: '/tickets', query: { reference: '{$stamp}' } },
      found: { items: { from: 'json', path: '/tickets' }, record: '/id' },
      consistency: { kind: 'read_after_write' },
      proves: { present: 'applied', absent: 'not_applied' },
      evidence: EVIDENCE,
    },
  ],
  outcomes: [],
  reversals: [{ kind: 'none', restores: 'nothing', evidence: EVIDENCE }],
  limits: { late_arrival: 'PT1S', reply_timeout: 'PT2S' },
};

export async function measureDown({ directory, flags, say }) {
  const destinations = await Promise.all(Array.from({ length: HEALTHY + 1 }, () => startDestination()));
  const fifth = destinations[HEALTHY];
  const healthy = destinations.slice(0, HEALTHY);
  const ledger = await openOver(directory, destinations);
  const load = new LoadOfTheFifth(ledger);
  const [callers = 16] = flags.concurrency.slice(1, 2);
  try {
    const leg = (manner) => ({
      name: manner,
      ms: flags.quick ? 1_500 : 4_000,
      operation: operationOn(ledger),
      destination: {
        async reset() {
          await load.stop();
          const isUp = manner === 'up' || manner === 'again';
          await fifth.ask({ manner: isUp ? 'up' : manner });
          if (isUp) await drained(ledger);
          load.start();
          this.before = await total(healthy);
        },
        async count() {
          const { records, twice } = await total(healthy);
          return { records: records - this.before.records, twice };
        },
      },
    });
    const legs = LEGS.map(leg);
    await warmUp({ legs: legs.slice(0, 1), operations: flags.quick ? 1_000 : 4_000, nextKey });
    say(
      `counterfoil bench --down: Node ${process.versions.node}, ${HEALTHY} destinations and a fifth, ${callers} callers`,
    );
    const rounds = await runRounds({
      legs,
      concurrency: callers,
      cleanRounds: flags.rounds,
      roundsMax: flags.quick ? flags.rounds : flags.rounds * 2,
      nextKey,
      destination: { pids: () => destinations.map(({ pid }) => pid) },
      onRound: (round) => say(sayRound(round)),
    });
    await load.stop();
    await fifth.ask({ manner: 'up' });
    await drained(ledger);
    const isFifthExact = (await fifth.ask({})).twice === 0 && (await fifth.ask({})).records === load.written;
    return resultOf({ rounds, flags, isFifthExact, load, say });
  } finally {
    await load.stop();
    await ledger.close();
    for (const destination of destinations) await destination.close();
  }
}

function resultOf({ rounds: { clean, isExact, run }, flags, isFifthExact, load, say }) {
  const rounds = { clean: clean.length, dropped: run - clean.length, needed: CLEAN_ROUNDS_MIN };
  const isEnough = clean.length >= rounds.needed;
  const figures = isEnough
    ? {
        againToUp: ratio(clean, 'again', 'up'),
        hangingToUp: ratio(clean, 'hanging', 'up'),
        refusingToUp: ratio(clean, 'refusing', 'up'),
        up: summarise(clean, 'up'),
        hanging: summarise(clean, 'hanging'),
        refusing: summarise(clean, 'refusing'),
        again: summarise(clean, 'again'),
      }
    : {};
  for (const name of isEnough ? LEGS : []) {
    const { p50Ms, p99Ms, perSecond } = figures[name];
    say(
      `  the four, the fifth ${name}: ${perSecond.median} (${perSecond.min}–${perSecond.max}) ops/s, p50 ${p50Ms} ms, p99 ${p99Ms} ms`,
    );
  }
  say(`  ${load.written} writes for the fifth came meanwhile; each is there once in the end`);
  const judged = (name, value) =>
    gate(`throughput of the four while the fifth is ${name} / before`, value?.median, {
      atLeast: RATIO_MIN,
      because: `${rounds.clean} clean rounds, ${rounds.needed} needed (other work used more than ${FOREIGN_CORES_MAX} cores)`,
    });
  return {
    node: process.versions.node,
    rounds,
    ...figures,
    gates: [
      // A sample of a few short rounds beside other work shows its ratios, and judges none.
      ...(flags.quick
        ? []
        : [judged('hanging', figures.hangingToUp), judged('refusing', figures.refusingToUp)]),
      gate('each write for the four is accepted, and there once', isExact),
      gate('each write for the fifth is there once when it is back', isFifthExact),
    ],
  };
}

function sayRound({ foreignCores, legs }) {
  const perSecond = Object.entries(legs).map(
    ([name, leg]) =>
      `${name} ${Math.round(leg.perSecond)} (${leg.cpuMsPerOperation.toFixed(2)} CPU ms each, p99 ${percentile(leg.latencies, 0.99).toFixed(1)} ms)`,
  );
  const isClean = foreignCores === undefined || foreignCores <= FOREIGN_CORES_MAX;
  const to = (name) => (legs[name].perSecond / legs.up.perSecond).toFixed(2);
  return `  ${perSecond.join('  ')} ops/s  hanging/up ${to('hanging')}  refusing/up ${to('refusing')}  again/up ${to('again')}  foreign cores ${foreignCores ?? 'not measured here'}${isClean ? '' : ' (dropped)'}`;
}

// ── The ledger ───────────────────────────────────────────────────────────────────────────────────────────────

async function openOver(directory, destinations) {
  const http = [];
  for (const [index, { port }] of destinations.entries()) {
    const name = `tickets-${index + 1}`;
    const folder = join(directory, name);
    mkdirSync(folder, { recursive: true });
    const contract = {
      contract: 1,
      id: name,
      revision: 1,
      destination: { name, protocol: 'http' },
      ownership: { owner: 'bench', reviewed_on: '2026-11-01', review_by: '2099-12-31' },
      operations: [TICKET],
    };
    writeFileSync(join(folder, 'contract.json'), JSON.stringify(contract));
    const file = join(folder, 'destination.json');
    const tools = { 'ticket.create': { class: 'ordinary' } };
    const url = `http://127.0.0.1:${port}`;
    writeFileSync(file, JSON.stringify({ destination: name, url, contract: 'contract.json', tools }));
    http.push(await openHttpDestination(file));
  }
  const settings = { callerWaitMs: 25_000, writesPerHourMax: undefined };
  return openLedger({ data: join(directory, 'data'), http, settings });
}

function operationOn(ledger) {
  let turn = 0;
  return async (key) => {
    turn = (turn + 1) % HEALTHY;
    const answer = await write(ledger, `tickets-${turn + 1}`, key);
    if (answer.operation?.effect !== 'accepted') {
      throw new Error(`The write of ${key} came out as ${answer.operation?.effect ?? answer.kind}.`);
    }
  };
}

function write(ledger, destination, title, more = {}) {
  return ledger.write({
    destination,
    tool: 'ticket.create',
    arguments: { title },
    requester: 'bench',
    run: { id: 'bench' },
    ...more,
  });
}

/** Callers that do not wait for the fifth, and do not stop asking for it. */
class LoadOfTheFifth {
  #ledger;
  #callers = [];
  #isOn = false;
  written = 0;

  constructor(ledger) {
    this.#ledger = ledger;
  }

  start() {
    this.#isOn = true;
    this.#callers = Array.from({ length: CALLERS_OF_THE_FIFTH }, () => this.#call());
  }

  async stop() {
    this.#isOn = false;
    await Promise.all(this.#callers);
  }

  async #call() {
    while (this.#isOn) {
      this.written += 1;
      await write(this.#ledger, `tickets-${HEALTHY + 1}`, nextKey(), { waitMs: 0 });
      await pause(PAUSE_MS);
    }
  }
}

/** What was caught in the outage goes on by itself; a round begins when nothing of it is left. */
async function drained(ledger) {
  const endsAt = performance.now() + DRAINED_WITHIN_MS;
  while ((await ledger.readings.open({ limit: 1 })).length > 0) {
    if (performance.now() > endsAt) throw new Error('What waited for the fifth has not gone on by itself.');
    await pause(100);
  }
}

// ── The destinations ─────────────────────────────────────────────────────────────────────────────────────────

async function startDestination() {
  const child = fork(fileURLToPath(new URL('down-destination.mjs', import.meta.url)));
  const [{ port }] = await once(child, 'message');
  let asked = 0;
  return {
    port,
    pid: child.pid,
    async ask(what) {
      asked += 1;
      const number = asked;
      const answered = new Promise((resolve) => {
        const listen = (message) => {
          if (message.ask !== number) return;
          child.off('message', listen);
          resolve(message);
        };
        child.on('message', listen);
      });
      child.send({ ...what, ask: number });
      return answered;
    },
    async close() {
      child.disconnect();
      await once(child, 'exit');
    },
  };
}

async function total(destinations) {
  const answers = await Promise.all(destinations.map((destination) => destination.ask({})));
  return {
    records: answers.reduce((sum, { records }) => sum + records, 0),
    twice: answers.reduce((sum, { twice }) => sum + twice, 0),
  };
}
