// The floor benchmark: what the ledger costs, beside a bare POST and beside the least that a ledger can be.
//
// Every round runs, in one process and in this order, the bare POST, the hand-written floor ledger and the
// product's full path through the library's front door, against a destination in a process of its own. What
// counts are the ratios within a round, over rounds in which the machine did little else, and counts: absolute
// numbers of a shared machine say nothing.

import { mkdtemp, rm, stat, statfs } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startDestination } from './destination-process.mjs';
import { measureDown } from './down.mjs';
import { median, rounded } from './figures.mjs';
import { readFlags, USAGE } from './flags.mjs';
import { openFloorLedger } from './floor-ledger.mjs';
import { measureFsyncs, runOperations } from './fsyncs.mjs';
import { countLine, gate, inWords } from './gates.mjs';
import { measureMcp } from './mcp.mjs';
import { nextKey, payload } from './payloads.mjs';
import { openProduct } from './product.mjs';
import { FOREIGN_CORES_MAX, ratio, runRounds, summarise, warmUp } from './rounds.mjs';
import { measureRowBytes } from './row-bytes.mjs';
import { measureStdio } from './stdio.mjs';

const CLEAN_ROUNDS_MIN = 4;
const RATIO_MIN = 0.5;
/** Beside the packages, and so on the disk of the checkout: where there is a /tmp in memory, an fsync is free. */
const SCRATCH = fileURLToPath(new URL('../node_modules/', import.meta.url));
const TMPFS = 0x01021994;

process.exitCode = await main(process.argv.slice(2));

async function main(argv) {
  const flags = readFlags(argv);
  if (flags.problem !== undefined) {
    console.error(`${flags.problem}\n\n${USAGE}`);
    return 2;
  }
  const directory = await mkdtemp(join(SCRATCH, '.bench-'));
  try {
    const result = await measure({ directory, flags });
    say('');
    for (const one of result.gates) say(inWords(one));
    const ok = result.gates.every((one) => one.passed);
    say(flags.json ? JSON.stringify({ ok, ...result }) : countLine(result.gates));
    return ok ? 0 : 1;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function measure({ directory, flags }) {
  if (flags.down) return measureDown({ directory, flags, say });
  if (flags.mcp) return measureMcp({ directory, flags, say });
  if (flags.stdio) return measureStdio({ directory, quick: flags.quick, say });
  return measureLedger({ directory, flags });
}

function say(line) {
  console.log(line);
}

async function measureLedger({ directory, flags }) {
  const { concurrency, delayMs, quick } = flags;
  say(
    `counterfoil bench: Node ${process.versions.node}, ${availableParallelism()} cores, ` +
      `destination ${delayMs === 0 ? 'without delay' : `with ${delayMs} ms delay`}`,
  );
  // Counts do not depend on the destination's delay, so they are always taken at one that has none.
  const quickDestination = await startDestination({ delayMs: 0 });
  const destination = delayMs === 0 ? quickDestination : await startDestination({ delayMs });
  try {
    const rowBytes = await measureRowBytes({ directory, client: quickDestination });
    const measured = await measureRounds({ directory, flags, destination, rowBytes });
    const counts = await measureCounts({ directory, quick, port: quickDestination.port });
    const result = {
      node: process.versions.node,
      cores: availableParallelism(),
      delayMs,
      quick,
      rowBytes,
      ...measured,
      ...counts,
    };
    return { ...result, gates: gatesOf(result, concurrency) };
  } finally {
    await quickDestination.close();
    if (destination !== quickDestination) await destination.close();
  }
}

async function measureRounds({ directory, flags, destination, rowBytes }) {
  const { quick } = flags;
  const floor = await openFloorLedger({
    file: join(directory, 'floor.sqlite'),
    client: destination,
    rowBytes,
  });
  const appendOnly = await openFloorLedger({
    file: join(directory, 'append-only.sqlite'),
    client: destination,
    rowBytes,
    isAppendOnly: true,
  });
  const product = await openProduct({ data: join(directory, 'product'), client: destination });
  let operations = 0;
  const legs = [
    {
      name: 'bare',
      ms: quick ? 300 : 500,
      operation: (key) => destination.post(JSON.stringify(payload(key))),
    },
    { name: 'floor', ms: quick ? 300 : 500, operation: floor.operation, commits: () => floor.commits },
    {
      name: 'appendOnly',
      ms: quick ? 300 : 500,
      operation: appendOnly.operation,
      commits: () => appendOnly.commits,
    },
    {
      name: 'product',
      ms: quick ? 500 : 1_000,
      async operation(key) {
        await product.operation(key);
        operations += 1;
      },
      commits: () => product.store.commits,
    },
  ];
  await warmUp({ legs, operations: quick ? 2_000 : 4_000, nextKey });

  const { durability } = product.store;
  const valid = await isValid({ directory, durability, floor });
  say(sayDurability(durability, valid));
  say(
    `rows: ${rowBytes.claim} bytes in the commit that claims, ${rowBytes.outcome} in the outcome's, as bound by the ` +
      `product over ${rowBytes.measuredOver} operations; the floor writes as many`,
  );

  const perConcurrency = {};
  let clean = true;
  let exact = true;
  const cleanRoundsMin = quick ? Math.min(flags.rounds, 2) : CLEAN_ROUNDS_MIN;
  for (const callers of flags.concurrency) {
    say(`\nconcurrency ${callers}`);
    const rounds = await runRounds({
      legs,
      concurrency: callers,
      cleanRounds: flags.rounds,
      // A sample has its time and no more: beside other work it shows what it saw, and judges no ratio.
      roundsMax: quick ? flags.rounds : flags.rounds * 2,
      nextKey,
      destination,
      onRound: (round) => say(sayRound(round)),
    });
    exact &&= rounds.isExact;
    const isClean = rounds.clean.length >= cleanRoundsMin;
    clean &&= isClean;
    perConcurrency[callers] = {
      rounds: {
        clean: rounds.clean.length,
        dropped: rounds.run - rounds.clean.length,
        needed: cleanRoundsMin,
      },
      ...(isClean ? figuresOf(rounds.clean) : {}),
    };
    say(sayConcurrency(perConcurrency[callers]));
  }
  const rssMb = Math.round(process.memoryUsage().rss / 2 ** 20);
  const stillOpen = await product.ledger.readings.open({ limit: 1 });
  await product.close();
  floor.close();
  appendOnly.close();
  const { size } = await stat(product.file);
  const storedBytesPerOperation = Math.round(size / operations);
  say(
    `\nstored: ${storedBytesPerOperation} bytes per operation, indexes included, over ${operations} operations; resident: ${rssMb} MB`,
  );
  return {
    durability,
    valid,
    clean,
    exact: exact && stillOpen.length === 0,
    concurrency: perConcurrency,
    storedBytesPerOperation,
    rssMb,
  };
}

function figuresOf(rounds) {
  return {
    productToFloor: ratio(rounds, 'product', 'floor'),
    productToAppendOnly: ratio(rounds, 'product', 'appendOnly'),
    productToBare: ratio(rounds, 'product', 'bare'),
    floorToBare: ratio(rounds, 'floor', 'bare'),
    bare: summarise(rounds, 'bare'),
    floor: summarise(rounds, 'floor'),
    appendOnly: summarise(rounds, 'appendOnly'),
    product: summarise(rounds, 'product'),
  };
}

/** What is counted in processes of their own. */
async function measureCounts({ directory, quick, port }) {
  const runs = [
    { name: 'c1', concurrency: 1, operations: quick ? 400 : 500 },
    { name: 'c1WithReadBack', concurrency: 1, operations: quick ? 400 : 500, withReadBack: true },
    { name: 'c64', concurrency: 64, operations: quick ? 2_000 : 6_400 },
    { name: 'c64WithReadBack', concurrency: 64, operations: quick ? 2_000 : 6_400, withReadBack: true },
  ];
  say('\nper operation, opening and closing of the ledger included');
  const fsyncs = {};
  for (const { name, ...run } of runs) {
    const counted = await measureFsyncs({ directory, port, ...run });
    fsyncs[name] = {
      perOperation: rounded(counted.perOperation, 3),
      commitsPerOperation: rounded(counted.commitsPerOperation, 3),
      source: counted.source,
      operations: run.operations,
    };
    say(
      `  concurrency ${run.concurrency}${run.withReadBack ? ', read back' : ''}: ${fsyncs[name].perOperation} fsyncs ` +
        `(${counted.source}), ${fsyncs[name].commitsPerOperation} commits, over ${run.operations} operations`,
    );
  }
  const starts = [];
  for (let start = 0; start < 3; start += 1) {
    starts.push(await runOperations({ directory, port, operations: 1, concurrency: 1 }));
  }
  const firstOperationMs = Math.round(median(starts.map((start) => start.firstOperationMs)));
  say(`  from the start of a process to its first operation's answer: ${firstOperationMs} ms (median of 3)`);
  return { fsyncs, firstOperationMs };
}

/**
 * Counts are the same on any machine, and always decide. Ratios decide in a full run on a quiet machine: a sample
 * of a few short rounds beside other work shows them and judges nothing.
 */
function gatesOf({ valid, exact, fsyncs, concurrency, quick }, callers) {
  const ratios = (quick ? [] : callers)
    .filter((number) => [1, 16, 64].includes(number))
    .map((number) => {
      const { productToFloor, rounds } = concurrency[number];
      return gate(`product / floor ledger at concurrency ${number}`, productToFloor?.median, {
        atLeast: RATIO_MIN,
        because: `${rounds.clean} clean rounds, ${rounds.needed} needed (other work used more than ${FOREIGN_CORES_MAX} cores)`,
      });
    });
  return [
    gate('commits are durable, as read back', valid),
    gate('records at the destination = operations, no key twice, every operation accepted', exact),
    gate('fsyncs per operation at concurrency 1', fsyncs.c1.perOperation, { atMost: 2.2 }),
    gate('fsyncs per operation at concurrency 1, read back', fsyncs.c1WithReadBack.perOperation, {
      atMost: 3.3,
    }),
    gate('fsyncs per operation at concurrency 64', fsyncs.c64.perOperation, { atMost: 0.2 }),
    ...ratios,
  ];
}

/** A commit that costs no fsync would make every figure worthless, for both ledgers. */
async function isValid({ directory, durability, floor }) {
  const { type } = await statfs(directory);
  const areFull = [durability.settings, floor.settings].every(
    (settings) => settings.synchronous === 'full' && settings.journal_mode === 'wal',
  );
  return areFull && type !== TMPFS;
}

function sayDurability({ engine, version, settings }, valid) {
  const said = Object.entries(settings).map(([name, value]) => `${name} ${value}`);
  return `store: ${engine} ${version}, ${said.join(', ')}${valid ? '' : '\nINVALID: commits are not durable here'}`;
}

function sayRound({ foreignCores, legs }) {
  const perSecond = Object.entries(legs).map(([name, leg]) => `${name} ${Math.round(leg.perSecond)}`);
  const isClean = foreignCores === undefined || foreignCores <= FOREIGN_CORES_MAX;
  return (
    `  ${perSecond.join('  ')} ops/s  product/floor ${(legs.product.perSecond / legs.floor.perSecond).toFixed(2)}` +
    `  foreign cores ${foreignCores ?? 'not measured here'}${isClean ? '' : ' (dropped)'}`
  );
}

function sayConcurrency({ rounds, ...figures }) {
  if (figures.product === undefined) {
    return `  no verdict: ${rounds.clean} clean rounds, ${rounds.needed} needed`;
  }
  const of = ({ median: middle, min, max }) => `${middle} (${min}–${max})`;
  const lines = [
    `  over ${rounds.clean} clean rounds, ${rounds.dropped} dropped: product/floor ${of(figures.productToFloor)}, ` +
      `product/append-only floor ${of(figures.productToAppendOnly)}, product/bare ${of(figures.productToBare)}, floor/bare ${of(figures.floorToBare)}`,
  ];
  for (const name of ['bare', 'floor', 'appendOnly', 'product']) {
    const leg = figures[name];
    lines.push(
      `  ${name.padEnd(10)} ${of(leg.perSecond)} ops/s, p50 ${leg.p50Ms} ms, p99 ${leg.p99Ms} ms, ` +
        `${leg.cpuMsPerOperation} CPU ms and ${leg.commitsPerOperation} commits per operation`,
    );
  }
  return lines.join('\n');
}
