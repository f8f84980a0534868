// One of the processes that send, on the same ledger as the others. It does what it is told over its channel.
//
//   node worker.mjs '{"data":…,"port":…,"settings":…,"isBlind":…}'

import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { functionDestination, openLedger } from '../dist/index.js';
import { openSqliteStore } from '../dist/store/sqlite/sqlite-store.js';
import { BlindStore } from './blind-store.mjs';
import { lines } from './lines.mjs';

const { data, isBlind, port, settings } = JSON.parse(process.argv[2]);
/** Writes are asked for so many at a time. */
const ASKED_AT_ONCE = 64;

const socket = connect(port, '127.0.0.1');
socket.setNoDelay(true);
const waiting = new Map();
let sent = 0;
lines(socket, (text) => {
  const { id } = JSON.parse(text);
  waiting.get(id)?.();
  waiting.delete(id);
});

/** Handed over at once: nothing is queued between the ledger's last check and the socket. */
function write({ key, trial }) {
  sent += 1;
  const id = sent;
  socket.write(`${JSON.stringify({ id, key, trial })}\n`);
  return new Promise((resolve) => waiting.set(id, () => resolve({ content: [] })));
}

const facts = {
  destination: 'race',
  tool: 'write',
  class: 'ordinary',
  classSource: 'configuration',
  repeat: 'free',
  checksArguments: false,
  digest: 'write',
};
/**
 * While it is shut nothing can be sent, and what is asked for waits. From ajar each write gets through after a while of
 * its own, so that they leave one after the other, however fast the machine is.
 */
let gate = 'open';
const AJAR_MS = 1_500;
const inner = functionDestination({ name: 'race', tools: { write } });
const destination = {
  name: inner.name,
  set onLateReply(listener) {
    inner.onLateReply = listener;
  },
  isConnected: () => gate === 'open' && inner.isConnected(),
  async connect() {
    if (gate === 'shut') return { connected: false, detail: 'the gate is shut', isAway: false };
    if (gate === 'ajar') await pause(Math.random() * AJAR_MS);
    return inner.connect();
  },
  send: (request) => inner.send(request),
  ask: (request) => inner.ask(request),
  close: () => inner.close(),
};
const ledger = await openLedger({
  data,
  settings,
  destinations: [destination],
  factsFor: () => facts,
  ...(isBlind ? { store: new BlindStore(await openSqliteStore({ file: join(data, 'ledger.sqlite') })) } : {}),
});

async function propose({ count, requester, trial, worker }) {
  const made = {};
  let next = 0;
  const asking = async () => {
    while (next < count) {
      const key = `${worker}.${next}`;
      next += 1;
      const answer = await ledger.write({
        destination: 'race',
        tool: 'write',
        arguments: { trial, key },
        requester,
        run: { id: `trial-${trial}` },
        waitMs: 0,
      });
      made[key] = answer.operation.id;
    }
  };
  await Promise.all(Array.from({ length: ASKED_AT_ONCE }, asking));
  process.send({ made });
}

process.on('message', (message) => {
  if (message.gate !== undefined) {
    gate = message.gate;
    process.send({ gate });
  }
  if (message.propose !== undefined) void propose(message.propose);
  if (message.end === true) {
    void ledger.close().then(() => {
      socket.destroy();
      process.exit(0);
    });
  }
});
process.on('disconnect', () => process.exit(0));
process.send({ isReady: true });
