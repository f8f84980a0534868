// What the gateway costs between an MCP client and an MCP server, over HTTP and over stdio.
//
// Every round asks, in this order: the server itself, the gateway in front of it with its tool declared as a read and
// as a write, and, because the two other gateways stand in front of servers over stdio only, all three in front of
// the same server over stdio. The ratios are made within a round.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DECLARED, startGateway } from '../conformance/gateway.mjs';
import { startListener } from '../conformance/listener.mjs';
import { installInto } from '../scripts/on-demand.mjs';
import { gate } from './gates.mjs';
import { connectMcp } from './mcp-client.mjs';
import { nextKey } from './payloads.mjs';
import { FOREIGN_CORES_MAX, ratio, runRounds, summarise, warmUp } from './rounds.mjs';
import { measureStdio } from './stdio.mjs';

/** At 64 callers, in throughput. */
const DIRECT_TO_GATEWAY_MAX = 2;
const GATEWAY_TO_OTHERS_MIN = 2;
const CLEAN_ROUNDS_MIN = 4;
const JUDGED_CALLERS = 64;

const SERVER = fileURLToPath(new URL('mcp-server.mjs', import.meta.url));
const STDIO = { command: process.execPath, args: [SERVER, 'stdio'] };

/** The other gateways, as their own documentation starts them for clients with sessions. */
const OTHERS = {
  'mcp-proxy': {
    version: '6.7.19',
    program: 'mcp-proxy/dist/bin/mcp-proxy.mjs',
    args: (port) => ['--host', '127.0.0.1', '--port', String(port), '--', STDIO.command, ...STDIO.args],
  },
  supergateway: {
    version: '4.0.0',
    program: 'supergateway/dist/index.js',
    args: (port) => [
      '--stdio',
      [STDIO.command, ...STDIO.args].join(' '),
      '--outputTransport',
      'streamableHttp',
      '--stateful',
      '--logLevel',
      'none',
      '--port',
      String(port),
    ],
  },
};

export async function measureMcp({ directory, flags, say }) {
  const { quick } = flags;
  say(
    `installing ${Object.entries(OTHERS)
      .map(([name, { version }]) => `${name} ${version}`)
      .join(' and ')}`,
  );
  const others = join(directory, 'others');
  installInto(
    others,
    Object.entries(OTHERS).map(([name, { version }]) => `${name}@${version}`),
  );

  const processes = [];
  const clients = [];
  try {
    const legs = await startLegs({ directory, others, processes, clients, quick });
    await warmUp({ legs, operations: quick ? 500 : 2_000, nextKey });
    const concurrency = {};
    let exact = true;
    for (const callers of flags.concurrency) {
      say(`\nconcurrency ${callers}`);
      const rounds = await runRounds({
        legs,
        concurrency: callers,
        cleanRounds: flags.rounds,
        roundsMax: quick ? flags.rounds : flags.rounds * 2,
        nextKey,
        destination: { pids: () => processes.flatMap(({ pid }) => withChildren(pid)) },
        onRound: (round) => say(sayRound(round)),
      });
      exact &&= rounds.isExact;
      concurrency[callers] = figuresOf(rounds, legs);
      say(sayFigures(concurrency[callers]));
    }
    const stdio = await measureStdio({ directory, quick, say });
    const gates = [
      gate('every call was answered once by the server, with the record of its key', exact),
      ...(quick ? [] : ratioGates(concurrency)),
      ...stdio.gates,
    ];
    return { node: process.versions.node, quick, exact, concurrency, stdio: stdio.stdio, gates };
  } finally {
    for (const client of clients) await client.close();
    for (const one of processes) await one.close();
  }
}

async function startLegs({ directory, others, processes, clients, quick }) {
  const started = async (starting) => {
    const one = await starting;
    processes.push(one);
    return one.url;
  };
  const gateway = (name, server, declared) =>
    started(
      startGateway({
        folder: join(directory, name),
        server,
        tools: ['record', 'calls'],
        declared,
      }),
    );
  const other = (name) =>
    started(
      startListener(name, (port) => [
        join(others, 'node_modules', OTHERS[name].program),
        ...OTHERS[name].args(port),
      ]),
    );
  const direct = await started(startListener('the server', (port) => [SERVER, 'http', String(port)]));
  const urls = {
    direct,
    reads: await gateway('reads', { url: direct }, DECLARED.reads),
    writes: await gateway('writes', { url: direct }, DECLARED.writes),
    'reads-stdio': await gateway('reads-stdio', STDIO, DECLARED.reads),
    'mcp-proxy': await other('mcp-proxy'),
    supergateway: await other('supergateway'),
  };
  const legs = [];
  for (const [name, url] of Object.entries(urls)) {
    const client = await connectMcp(url);
    clients.push(client);
    legs.push({ name, ms: quick ? 300 : 700, operation: client.record, destination: tallyOf(client) });
  }
  return legs;
}

/** What the server itself has counted, since the last reset. */
function tallyOf(client) {
  let before = 0;
  return {
    async reset() {
      before = await client.calls();
    },
    async count() {
      return { records: (await client.calls()) - before, twice: 0 };
    },
  };
}

function figuresOf({ clean, run }, legs) {
  const rounds = { clean: clean.length, dropped: run - clean.length, needed: CLEAN_ROUNDS_MIN };
  if (clean.length === 0) return { rounds };
  return {
    rounds,
    directToReads: ratio(clean, 'direct', 'reads'),
    directToWrites: ratio(clean, 'direct', 'writes'),
    readsToMcpProxy: ratio(clean, 'reads-stdio', 'mcp-proxy'),
    readsToSupergateway: ratio(clean, 'reads-stdio', 'supergateway'),
    legs: Object.fromEntries(legs.map(({ name }) => [name, summarise(clean, name)])),
  };
}

function ratioGates(concurrency) {
  const judged = concurrency[JUDGED_CALLERS];
  if (judged === undefined) return [];
  const { rounds } = judged;
  const because = `${rounds.clean} clean rounds, ${rounds.needed} needed (other work used more than ${FOREIGN_CORES_MAX} cores)`;
  const median = (name) => (rounds.clean < rounds.needed ? undefined : judged[name]?.median);
  const at = `at concurrency ${JUDGED_CALLERS}`;
  return [
    gate(
      `reads over HTTP, throughput of the server itself / through the gateway ${at}`,
      median('directToReads'),
      {
        atMost: DIRECT_TO_GATEWAY_MAX,
        because,
      },
    ),
    gate(`reads, throughput through the gateway / through mcp-proxy ${at}`, median('readsToMcpProxy'), {
      atLeast: GATEWAY_TO_OTHERS_MIN,
      because,
    }),
    gate(
      `reads, throughput through the gateway / through supergateway ${at}`,
      median('readsToSupergateway'),
      {
        atLeast: GATEWAY_TO_OTHERS_MIN,
        because,
      },
    ),
  ];
}

/** A process and all that it has started, where the system tells (Linux). */
function withChildren(pid) {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
    return [pid, ...children.filter(Boolean).flatMap((child) => withChildren(Number(child)))];
  } catch {
    return [pid];
  }
}

function sayRound({ foreignCores, legs }) {
  const shown = Object.entries(legs).map(([name, { perSecond }]) => `${name} ${Math.round(perSecond)}/s`);
  return `  ${shown.join('  ')}  others ${foreignCores ?? '?'} cores`;
}

function sayFigures({ rounds, directToReads, directToWrites, readsToMcpProxy, readsToSupergateway, legs }) {
  const kept = `${rounds.clean} clean rounds, ${rounds.dropped} dropped`;
  if (legs === undefined) return `  no figures: ${kept}`;
  const p50 = Object.entries(legs).map(([name, { p50Ms }]) => `${name} ${p50Ms}`);
  return [
    `  server / reads ${directToReads.median}, server / writes ${directToWrites.median}, reads over stdio / mcp-proxy ` +
      `${readsToMcpProxy.median}, / supergateway ${readsToSupergateway.median} (${kept})`,
    `  p50 ms: ${p50.join('  ')}`,
  ].join('\n');
}
