// What the gateway adds to a read over stdio, and what an idle gateway holds in memory.
//
// The same server is called directly and through `counterfoil mcp`, in alternating blocks of one run; a block's
// median through the gateway is compared with the median of the direct block before it.

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { percentile, rounded, spread } from './figures.mjs';
import { gate } from './gates.mjs';

const ADDED_P50_MAX_MS = 0.15;
const IDLE_RSS_MAX_MB = 120;
const IDLE_MS = 1_500;
const PROTOCOL_VERSION = '2025-06-18';

const SERVER = [process.execPath, fileURLToPath(new URL('stdio-server.mjs', import.meta.url))];
const GATEWAY = [
  process.execPath,
  fileURLToPath(new URL('../dist/cli/counterfoil.js', import.meta.url)),
  'mcp',
  '--no-resident',
  '--no-resident',
];

export async function measureStdio({ directory, quick, say }) {
  const through = async () => {
    const data = await mkdtemp(join(directory, 'gateway-'));
    return connect([...GATEWAY, '--data', data, '--', ...SERVER]);
  };
  const idle = await through();
  await idle.call();
  await delay(IDLE_MS);
  const idleRssMb = Math.round(residentMb(idle.pid));
  await idle.close();

  const direct = await connect(SERVER);
  const gateway = await through();
  const calls = quick ? 300 : 1_000;
  const rounds = [];
  let same = true;
  // The first block of each is a warm-up.
  await block(direct, calls);
  await block(gateway, calls);
  for (let round = 0; round < (quick ? 5 : 9); round += 1) {
    const plain = await block(direct, calls);
    const passed = await block(gateway, calls);
    same &&= plain.result === passed.result;
    rounds.push({ directMs: plain.p50Ms, gatewayMs: passed.p50Ms, addedMs: passed.p50Ms - plain.p50Ms });
    const { directMs, gatewayMs, addedMs } = rounds.at(-1);
    say(
      `  direct p50 ${directMs.toFixed(3)} ms  gateway p50 ${gatewayMs.toFixed(3)} ms  added ${addedMs.toFixed(3)} ms`,
    );
  }
  const busyRssMb = Math.round(residentMb(gateway.pid));
  await direct.close();
  await gateway.close();

  const figures = {
    directP50Ms: spread(rounds.map(({ directMs }) => directMs)),
    gatewayP50Ms: spread(rounds.map(({ gatewayMs }) => gatewayMs)),
    addedP50Ms: spread(rounds.map(({ addedMs }) => addedMs)),
  };
  say(
    `reads over stdio, ${calls} calls a block, ${rounds.length} rounds: added p50 ${figures.addedP50Ms.median} ms ` +
      `(${figures.addedP50Ms.min}–${figures.addedP50Ms.max}); resident: ${idleRssMb} MB idle, ${busyRssMb} MB after the load`,
  );
  return {
    node: process.versions.node,
    quick,
    stdio: { ...figures, callsPerBlock: calls, rounds: rounds.length, idleRssMb, busyRssMb },
    gates: [
      gate('results of reads are the same through the gateway, byte for byte', same),
      gate('added p50 of a read over stdio, ms', figures.addedP50Ms.median, { atMost: ADDED_P50_MAX_MS }),
      gate('resident memory of an idle gateway, MB', idleRssMb, { atMost: IDLE_RSS_MAX_MB }),
    ],
  };
}

/** One call after another; the raw text of the last result beside the median. */
async function block(connection, calls) {
  const latencies = [];
  let result;
  for (let made = 0; made < calls; made += 1) {
    const since = performance.now();
    const line = await connection.call();
    latencies.push(performance.now() - since);
    result = line.slice(line.indexOf('"result"'));
  }
  return { p50Ms: rounded(percentile(latencies, 0.5), 4), result };
}

/** Starts a server and shakes hands with it. */
async function connect([program, ...args]) {
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'ignore'] });
  const waiting = new Map();
  createInterface({ input: child.stdout }).on('line', (line) => {
    const { id } = JSON.parse(line);
    waiting.get(id)?.(line);
    waiting.delete(id);
  });
  let ids = 0;
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const request = (method, params) =>
    new Promise((resolve) => {
      ids += 1;
      waiting.set(ids, resolve);
      send({ id: ids, method, params });
    });
  await request('initialize', {
    protocolVersion: PROTOCOL_VERSION,
    capabilities: {},
    clientInfo: { name: 'bench', version: '1.0.0' },
  });
  send({ method: 'notifications/initialized' });
  await request('tools/list', {});
  return {
    pid: child.pid,
    call: () => request('tools/call', { name: 'get_record', arguments: { key: 'CHG-1041' } }),
    async close() {
      child.stdin.end();
      await once(child, 'exit');
    },
  };
}

function residentMb(pid) {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;
  } catch {
    return Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' })) / 1024;
  }
}
