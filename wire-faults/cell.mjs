// One cell of the table: one fault, one class of contract, a fresh ledger, and what has become of one write.

import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { openHttpDestination, openLedger } from '../dist/index.js';
import { contractOf } from './contracts.mjs';
import { isSecond } from './destination.mjs';

/** Faults of the way to the destination: they fire before it is reached. */
export const WAY_FAULTS = ['refused', 'name_not_found', 'tls_fail', 'connect_hang'];

/** Far above what an answer takes here, on a busy machine too, and far below what a reader waits for. */
const REPLY_TIMEOUT = 'PT0.8S';
const SETTINGS = {
  bounds: { attemptsMax: 2, elapsedMaxMs: 8_000, lookUpElapsedMaxMs: 400, sendByMs: 1_500 },
  lookUpTimeoutMs: 1_000,
  readBackTimeoutMs: 2_000,
  callerWaitMs: 0,
};
const SETTLED_WITHIN_MS = 30_000;

/**
 * @param {{ fault: string, contract: string, origin: string, folder: string, isBroken?: boolean }} cell `isBroken`: the
 *   positive control, in which a cut reply is taken for proof that nothing was sent
 * @returns {Promise<{ state: string, name: string, evidence: readonly string[] }>}
 */
export async function runCell({ fault, contract, folder, isBroken = false, origin }) {
  const name = `${contract}-${fault}${isBroken ? '-broken' : ''}`;
  const way = await wayTo(fault, `${origin}/w/${name}/${fault}`);
  const configuration = configure({ fault, contract, folder: join(folder, name), url: way.url });
  const opened = await openHttpDestination(configuration, {
    environment: { WIRE_TOKEN: 'token-of-the-table' },
  });
  const destination = isBroken ? broken(opened.destination) : opened.destination;
  const ledger = await openLedger({
    data: ':memory:',
    destinations: [destination],
    factsFor: opened.factsFor,
    settings: { ...SETTINGS, replyTimeoutMs: undefined },
  });
  try {
    const write = (title) =>
      ledger.write({
        destination: 'tickets',
        tool: 'ticket.create',
        arguments: { title },
        requester: 'agent',
        run: { id: 'table' },
        waitMs: 0,
      });
    if (isSecond(fault)) await settled(ledger, (await write('item-0')).operation.id);
    const { operation } = await write('item-1');
    // An answer that comes late is evidence as well: it is waited for.
    const end = await settled(ledger, operation.id, fault === 'late_reply');
    return { state: stateOf(end), name, evidence: end.evidence.map(wordsOf) };
  } finally {
    await ledger.close();
    way.close();
  }
}

/** `parked unknown (no_lookup)`; `closed accepted, repeated under request_key` */
function stateOf({ attempts, effect, stage, why }) {
  const cause = why === undefined || why.code === 'answered' ? '' : ` (${why.code})`;
  const under = attempts.findLast((attempt) => attempt.under !== undefined)?.under;
  return `${stage} ${effect}${cause}${under === undefined ? '' : `, repeated under ${under}`}`;
}

function wordsOf(piece) {
  return `${piece.kind}:${piece.what ?? piece.means ?? piece.found ?? piece.matches}`;
}

/** Closed, with a person, or waiting for a destination that is away. */
async function settled(ledger, id, isClosedLate = false) {
  const endsAt = Date.now() + SETTLED_WITHIN_MS;
  for (;;) {
    const { operation } = await ledger.readings.record(id);
    const isAway = operation.stage === 'ready' && operation.why?.code === 'waits_for_destination';
    const isParked = operation.stage === 'parked' && !isClosedLate;
    if (operation.stage === 'closed' || isParked || isAway) return operation;
    if (Date.now() > endsAt) return operation;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function configure({ contract, fault, folder, url }) {
  mkdirSync(folder, { recursive: true });
  const stated = contractOf(contract, fault.startsWith('accepted_'));
  for (const operation of stated.operations) {
    operation.limits = { ...operation.limits, reply_timeout: REPLY_TIMEOUT };
  }
  writeFileSync(join(folder, 'contract.json'), JSON.stringify(stated));
  const file = join(folder, 'destination.json');
  const configuration = {
    destination: 'tickets',
    url,
    contract: 'contract.json',
    headers: { Authorization: 'Bearer {token}' },
    secrets: { token: { env: 'WIRE_TOKEN' } },
    timeouts: { connect: 'PT0.8S', headers: 'PT5S', body: 'PT5S', late: 'PT3S' },
    pool: { connections: 4, keep_alive: 'PT30S' },
    reply_max_bytes: 65_536,
    tools: { 'ticket.create': { class: 'ordinary' } },
  };
  writeFileSync(file, JSON.stringify(configuration));
  return file;
}

/** The address that the fault leaves: of nobody, of a name that is not there, of something that is no server. */
async function wayTo(fault, url) {
  switch (fault) {
    case 'refused': {
      const server = await listening();
      await new Promise((resolve) => server.close(resolve));
      return { url: url.replace(/:\d+/, `:${server.port}`), close() {} };
    }
    case 'name_not_found':
      return { url: url.replace('http://127.0.0.1', 'https://nobody.invalid'), close() {} };
    case 'tls_fail':
      return { url: url.replace('http:', 'https:'), close() {} };
    case 'connect_hang': {
      // It takes the connection, and says nothing to the beginning of TLS.
      const sockets = new Set();
      const server = await listening((socket) => {
        sockets.add(socket);
        socket.on('error', () => {});
      });
      const close = () => {
        for (const socket of sockets) socket.destroy();
        server.close();
      };
      return { url: url.replace('http:', 'https:').replace(/:\d+/, `:${server.port}`), close };
    }
    default:
      return { url, close() {} };
  }
}

async function listening(onConnection = () => {}) {
  const server = createServer(onConnection);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return Object.assign(server, { port: server.address().port });
}

/** Planted: a cut reply is reported as proof that nothing left. */
function broken(destination) {
  const send = destination.send.bind(destination);
  destination.send = async (request) => {
    const report = await send(request);
    if (report.left === 'no' || report.reply !== undefined) return report;
    return { left: 'no', proof: 'planted', detail: 'a cut reply was taken for proof' };
  };
  return destination;
}
