// One round is every leg once, in one process and always in the same order. Ratios are made within a round, so
// that what the machine did meanwhile falls out of them, and only rounds in which other work was quiet count.

import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { percentile, rounded, spread } from './figures.mjs';

/** Rounds in which other processes used more than this many cores are dropped. */
export const FOREIGN_CORES_MAX = 0.3;
const WARM_UP_MS = 300;
/** How long a round waits for other work to pause before it begins all the same. */
const QUIET_WAIT_MS = 3_000;
const QUIET_SAMPLE_MS = 250;

/**
 * @param {{
 *   legs: readonly { name: string, ms: number, operation(key: string): Promise<void>, commits?(): number, destination?: Tally }[],
 *   concurrency: number,
 *   cleanRounds: number,
 *   roundsMax: number,
 *   nextKey(): string,
 *   destination: { pids(): readonly number[] } & Partial<Tally>,
 *   onRound(round: object): void,
 * }} options `cleanRounds`: go on until there are this many, or until `roundsMax`; `destination`: `pids`, whose work is
 *   part of the run, and what counts the operations of a leg that brings no count of its own
 * @typedef {{ count(): Promise<{ records: number, twice: number }>, reset(): Promise<unknown> }} Tally
 */
export async function runRounds({
  legs,
  concurrency,
  cleanRounds,
  roundsMax,
  nextKey,
  destination,
  onRound,
}) {
  for (const leg of legs) await closedLoop(leg, { concurrency, ms: WARM_UP_MS, nextKey });
  const rounds = [];
  const isClean = (round) => round.foreignCores === undefined || round.foreignCores <= FOREIGN_CORES_MAX;
  while (rounds.filter(isClean).length < cleanRounds && rounds.length < roundsMax) {
    await untilQuiet(destination.pids);
    const account = new CpuAccount(destination.pids);
    const measured = {};
    for (const leg of legs) {
      const tally = leg.destination ?? destination;
      await tally.reset();
      measured[leg.name] = await closedLoop(leg, { concurrency, ms: leg.ms, nextKey });
      const { records, twice } = await tally.count();
      measured[leg.name].isExact = records === measured[leg.name].operations && twice === 0;
    }
    const round = { foreignCores: account.foreignCores(), legs: measured };
    rounds.push(round);
    onRound(round);
  }
  const clean = rounds.filter(isClean);
  return {
    run: rounds.length,
    clean,
    isExact: rounds.every(({ legs }) => Object.values(legs).every((leg) => leg.isExact)),
  };
}

/** Brings every leg to where the compiler has seen it often enough: what is measured is a process that runs. */
export async function warmUp({ legs, operations, nextKey }) {
  for (const leg of legs) {
    let left = operations;
    const caller = async () => {
      while (left > 0) {
        left -= 1;
        await leg.operation(nextKey());
      }
    };
    await Promise.all(Array.from({ length: 16 }, caller));
  }
}

async function untilQuiet(pids) {
  const end = performance.now() + QUIET_WAIT_MS;
  while (performance.now() < end) {
    const account = new CpuAccount(pids);
    await delay(QUIET_SAMPLE_MS);
    const foreign = account.foreignCores();
    if (foreign === undefined || foreign <= FOREIGN_CORES_MAX) return;
  }
}

/** `concurrency` callers, each of which begins its next operation when its last one has ended. */
async function closedLoop(leg, { concurrency, ms, nextKey }) {
  const latencies = [];
  const cpuBefore = process.cpuUsage();
  const commitsBefore = leg.commits?.() ?? 0;
  const begin = performance.now();
  const end = begin + ms;
  const caller = async () => {
    for (let at = performance.now(); at < end; ) {
      await leg.operation(nextKey());
      const now = performance.now();
      latencies.push(now - at);
      at = now;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, caller));
  const seconds = (performance.now() - begin) / 1000;
  const { user, system } = process.cpuUsage(cpuBefore);
  const operations = latencies.length;
  return {
    operations,
    perSecond: operations / seconds,
    cpuMsPerOperation: (user + system) / 1000 / operations,
    commitsPerOperation: ((leg.commits?.() ?? 0) - commitsBefore) / operations,
    latencies,
  };
}

/** What one leg did over the clean rounds. */
export function summarise(rounds, name) {
  const measured = rounds.map(({ legs }) => legs[name]);
  const latencies = measured.flatMap((leg) => leg.latencies);
  return {
    perSecond: spread(measured.map((leg) => Math.round(leg.perSecond))),
    p50Ms: rounded(percentile(latencies, 0.5), 3),
    p99Ms: rounded(percentile(latencies, 0.99), 3),
    cpuMsPerOperation: spread(measured.map((leg) => leg.cpuMsPerOperation))?.median,
    commitsPerOperation: spread(measured.map((leg) => leg.commitsPerOperation))?.median,
  };
}

/** The ratio of two legs' throughput, per round. */
export function ratio(rounds, name, to) {
  return spread(rounds.map(({ legs }) => legs[name].perSecond / legs[to].perSecond));
}

/** CPU that was used by neither this process nor those of the run, where the system tells (Linux). */
class CpuAccount {
  #pids;
  #at = performance.now();
  #own = process.cpuUsage();
  #ofRun;
  #system;

  constructor(pids) {
    this.#pids = pids();
    this.#ofRun = sumCpuMs(this.#pids);
    this.#system = systemCpuMs();
  }

  /** In cores, since this account was opened. May be a little below 0: the counters tick every 10 ms. */
  foreignCores() {
    if (this.#system === undefined) return undefined;
    const { user, system } = process.cpuUsage(this.#own);
    const ours = (user + system) / 1000 + sumCpuMs(this.#pids) - this.#ofRun;
    return rounded((systemCpuMs() - this.#system - ours) / (performance.now() - this.#at), 2);
  }
}

const TICK_MS = 10;

function systemCpuMs() {
  const text = readOptional('/proc/stat');
  if (text === undefined) return undefined;
  const [user, nice, system, , , irq, softirq, steal] = text
    .slice(0, text.indexOf('\n'))
    .trim()
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return (user + nice + system + irq + softirq + steal) * TICK_MS;
}

function sumCpuMs(pids) {
  return pids.reduce((sum, pid) => sum + processCpuMs(pid), 0);
}

function processCpuMs(pid) {
  const text = readOptional(`/proc/${pid}/stat`);
  if (text === undefined) return 0;
  // The name before the last bracket may hold anything; the fields after it are counted from 3.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

function readOptional(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
