// Runs the official MCP conformance suite against a fixture server of ours, first directly, then through the
// gateway, and compares check by check: what passes without us must pass through us.
//
//   npm run conformance -- [--json] [--generation …] [--setting …] [--through URL] [--break …]

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AGREED } from './agreed.mjs';
import { notOurs } from './client-scope.mjs';
import { compareRuns, countVerdicts, judgeRun } from './compare.mjs';
import { startDamagingProxy } from './damaging-proxy.mjs';
import { startFixture } from './fixture-process.mjs';
import { TOOLS } from './fixture-tools.mjs';
import { readFlags, USAGE } from './flags.mjs';
import { DECLARED, startGateway } from './gateway.mjs';
import { requirementsOf, runClientScenarios, runServerScenarios } from './suite.mjs';
import { printGeneration } from './table.mjs';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));

process.exitCode = await main(process.argv.slice(2));

async function main(argv) {
  const flags = readFlags(argv);
  if (flags.help) {
    console.log(USAGE);
    return 0;
  }
  if (flags.problem !== undefined) {
    console.error(`${flags.problem}\n\n${USAGE}`);
    return 2;
  }
  const since = performance.now();
  const folder = mkdtempSync(join(tmpdir(), 'counterfoil-conformance-'));
  const fixture = await startFixture(flags.port);
  try {
    const generations = [];
    for (const generation of flags.generations) {
      const legs = await runGeneration({ ...flags, generation, fixture, folder: join(folder, generation) });
      printGeneration({ generation, legs }, (line) => console.log(line));
      generations.push({ generation, legs });
    }
    const total = countVerdicts(generations.flatMap(({ legs }) => legs.flatMap(({ rows }) => rows)));
    const ok = total.failed === 0 && total.passed > 0;
    const seconds = Number(((performance.now() - since) / 1_000).toFixed(1));
    console.log('');
    if (total.notAsked > 0) console.log(`– not asked of us: ${total.notAsked}; ${seconds} s`);
    if (ok) rmSync(folder, { recursive: true, force: true });
    else console.log(`What the suite has written down is kept in ${folder}`);
    console.log(
      flags.json
        ? JSON.stringify({ ok, ...total, seconds, generations })
        : `${total.passed} passed, ${total.failed} failed`,
    );
    return ok ? 0 : 1;
  } finally {
    await fixture.close();
  }
}

async function runGeneration({ suite, generation, settings, through, damage, fixture, folder }) {
  const required = requirementsOf(suite, generation);
  const legs = [];
  const needsServer =
    through !== undefined || damage !== undefined || settings.some((one) => one !== 'client');
  if (needsServer) {
    const direct = await run(suite, generation, fixture.url, join(folder, 'direct'));
    legs.push({ name: 'direct', rows: judgeRun({ required: required.server, run: direct }) });
    const fronts = frontsOf({ generation, settings, through, damage, upstream: fixture.url, folder });
    for (const front of fronts) {
      legs.push(await runThrough({ suite, generation, required, direct, front, fixture, folder }));
    }
  }
  if (settings.includes('client') && through === undefined && damage === undefined) {
    legs.push(await runClient({ suite, generation, required, folder: join(folder, 'client') }));
  }
  return legs;
}

/** What may stand in front of the fixture: what was named, a proxy that damages, or the gateway in each setting. */
function frontsOf({ generation, settings, through, damage, upstream, folder }) {
  if (through !== undefined) {
    return [{ name: 'through', start: async () => ({ url: through, close: async () => {} }) }];
  }
  if (damage !== undefined) {
    return [{ name: `break ${damage}`, start: () => startDamagingProxy(upstream, damage) }];
  }
  return settings
    .filter((setting) => DECLARED[setting] !== undefined)
    .map((setting) => ({
      name: setting,
      agreed: AGREED.filter((one) => one.generation === generation),
      start: () =>
        startGateway({
          folder: join(folder, `gateway-${setting}`),
          server: { url: upstream },
          tools: TOOLS.map((tool) => tool.name),
          declared: DECLARED[setting],
        }),
    }));
}

async function runThrough({
  suite,
  generation,
  required,
  direct,
  front: { name, start, agreed },
  fixture,
  folder,
}) {
  let front;
  let ran = new Map();
  let trouble;
  const before = await fixture.ofCalls();
  try {
    front = await start();
    ran = await run(suite, generation, front.url, join(folder, name.replaceAll(' ', '-')));
  } catch (error) {
    trouble = error.message;
  } finally {
    await front?.close();
  }
  const rows = compareRuns({ required: required.server, direct, through: ran, agreed });
  const operations = await front?.operations?.();
  const reached = (await fixture.ofCalls()) - before;
  if (operations !== undefined) rows.push(judgeLedger(name, operations, reached));
  return {
    name,
    rows,
    ...(front?.damaged === undefined ? {} : { damaged: front.damaged }),
    ...(operations === undefined ? {} : { operations: operations.length }),
    ...(trouble === undefined ? {} : { trouble }),
  };
}

/**
 * Whether the tools were what they were declared to be, or else the same run would be shown twice: no call of a read
 * is in the ledger, and as many messages of writes have reached the fixture as the ledger says were sent, each leg of
 * an attempt that was asked back one of them.
 */
function judgeLedger(setting, operations, reached) {
  const attempts = operations.flatMap((operation) => operation.attempts);
  const sent = attempts.reduce((sum, { legs = 1 }) => sum + legs, 0);
  const expected = setting === 'writes' ? reached : 0;
  const isAsDeclared = sent === expected && reached > 0;
  const problem = { check: `sent, while ${reached} came`, direct: expected, through: sent };
  return {
    scenario: '(ledger)',
    verdict: isAsDeclared ? 'passed' : 'failed',
    problems: isAsDeclared ? [] : [problem],
  };
}

async function runClient({ suite, generation, required, folder }) {
  mkdirSync(folder, { recursive: true });
  const command = `"${process.execPath}" "${here('upstream-driver.mjs')}"`;
  const excused = notOurs(required.client);
  const scenarios = required.client.filter((scenario) => excused[scenario] === undefined);
  const ran = await runClientScenarios(suite, { generation, scenarios, command, folder });
  return { name: 'client', rows: judgeRun({ required: required.client, run: ran, notOurs: excused }) };
}

function run(suite, generation, url, folder) {
  mkdirSync(folder, { recursive: true });
  return runServerScenarios(suite, { generation, url, folder });
}
