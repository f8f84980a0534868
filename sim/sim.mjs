// `npm run sim`: the real core and engine under virtual time, one run for each seed.
//
//   --seeds N        how many (200)
//   --from K         the first one (1)
//   --seed S         this one alone; --trace tells each of its events
//   --plan JSON      with --seed: the run that a smaller plan describes, as it was printed
//   --planted        each planted bug must be found within --seeds (1000); --only NAME for one of them
//   --clocks         also clocks that are set, by seconds or by hours, and that differ by seconds
//   --twice          each seed is played again, and must go the same way

import { loadBuild, misfits } from './build.mjs';
import { PLANTED, playPlanted } from './planted.mjs';
import { shrunk } from './shrink.mjs';
import { playSeed } from './world.mjs';

const out = (line) => process.stdout.write(`${line}\n`);

async function main(args) {
  const options = optionsOf(args);
  if (typeof options === 'string') {
    process.stderr.write(`${options}\n`);
    return 2;
  }
  if (options.planted) return playAllPlanted(options);
  return options.seed === undefined ? playMany(options) : playOne(options);
}

const NUMBERS = ['seeds', 'from', 'seed'];
const TEXTS = ['plan', 'only'];
const FLAGS = ['trace', 'planted', 'twice', 'clocks'];

function optionsOf(args) {
  const options = { from: 1 };
  for (let index = 0; index < args.length; index += 1) {
    const name = args[index].replace(/^--/, '');
    if (FLAGS.includes(name)) options[name] = true;
    else if (NUMBERS.includes(name) || TEXTS.includes(name)) {
      index += 1;
      const value = NUMBERS.includes(name) ? Number(args[index]) : args[index];
      if (args[index] === undefined || Number.isNaN(value)) return `--${name} needs a value.`;
      options[name] = value;
    } else return `There is no option ${args[index]}.`;
  }
  return options;
}

async function playMany({ seeds = 200, from, twice = false, clocks = false }) {
  const build = await loadBuild();
  const since = performance.now();
  const fired = new Map();
  let steps = 0;
  let operations = 0;
  let checks = 0;
  let red = 0;
  for (let seed = from; seed < from + seeds; seed += 1) {
    const end = await playSeed(build, seed, { clocks });
    steps += end.steps;
    operations += end.operations;
    checks += end.checks;
    for (const [fault, times] of end.fired) fired.set(fault, (fired.get(fault) ?? 0) + times);
    const isSame = !twice || (await playSeed(build, seed, { clocks })).trace === end.trace;
    if (!isSame) out(`Seed ${seed} went another way when it was played again.`);
    if (end.violation !== undefined) await tell(build, end);
    if (end.violation !== undefined || !isSame) red += 1;
  }
  const seconds = (performance.now() - since) / 1_000;
  const faults = [...fired].sort(([a], [b]) => (a < b ? -1 : 1)).map(([fault, times]) => `${fault} ${times}`);
  out(`${operations} operations, ${steps} steps, ${checks} checks. Faults: ${faults.join(', ')}.`);
  out(`${(seeds / seconds).toFixed(1)} seeds/s, ${Math.round(steps / seconds)} steps/s.`);
  out(`${seeds - red} passed, ${red} failed`);
  return red > 0 ? 1 : 0;
}

async function playOne({ seed, plan, trace = false, clocks = false }) {
  const build = await loadBuild();
  const end = await playSeed(build, seed, {
    clocks,
    ...(plan === undefined ? {} : { plan: JSON.parse(plan) }),
    ...(trace ? { onTrace: out } : {}),
  });
  if (end.violation !== undefined) out(`Seed ${seed}: ${end.violation.message}`);
  out(
    `${end.operations} operations, ${end.steps} steps in ${end.seconds} virtual seconds, trace ${end.trace}.`,
  );
  out(end.violation === undefined ? '1 passed, 0 failed' : '0 passed, 1 failed');
  return end.violation === undefined ? 0 : 1;
}

async function tell(build, end) {
  out(`Seed ${end.plan.seed}: ${end.violation.message}`);
  const small = await shrunk(build, end);
  out(`  Smaller, after ${small.steps} steps: ${small.violation.message}`);
  out(`  npm run sim -- --seed ${small.plan.seed} --trace --plan '${JSON.stringify(small.plan)}'`);
}

async function playAllPlanted({ seeds = 1_000, from, only }) {
  const bugs = PLANTED.filter(({ name }) => only === undefined || name === only);
  let red = 0;
  for (const bug of bugs) {
    const [misfit] = misfits(bug.patches ?? []);
    const found = misfit === undefined ? await playPlanted(bug, { seeds, from }) : undefined;
    if (found === undefined) red += 1;
    if (misfit !== undefined) {
      out(`${bug.name}: ${misfit}`);
      continue;
    }
    const words =
      found === undefined ? `NOT FOUND in ${seeds} seeds` : `seed ${found.seed}, ${found.violation.message}`;
    out(`${bug.name}: ${words}`);
  }
  out(`${bugs.length - red} passed, ${red} failed`);
  return red > 0 || bugs.length === 0 ? 1 : 0;
}

process.exitCode = await main(process.argv.slice(2));
