// The destination of the stop race: a line of JSON for each write, over TCP. It notes when each arrived, on the machine's
// monotonic clock, in a log of its own; tells when so many have; and answers each after a while, once it is told to.
//
//   node destination.mjs LOG

import { openSync, writeSync } from 'node:fs';
import { createServer } from 'node:net';
import { lines } from './lines.mjs';

const log = openSync(process.argv[2], 'a');
/** Per trial: how long each answer takes, once they are let go; until then the answers that are held. */
const trials = new Map();

const server = createServer((socket) => {
  socket.on('error', () => {});
  lines(socket, (text) => {
    const at = process.hrtime.bigint();
    const { id, key, trial } = JSON.parse(text);
    writeSync(log, `${trial} ${key} ${at}\n`);
    count(trial);
    const answer = () => {
      if (socket.writable) socket.write(`${JSON.stringify({ id })}\n`);
    };
    const known = trials.get(trial) ?? { held: [] };
    trials.set(trial, known);
    if (known.held !== undefined) known.held.push(answer);
    else setTimeout(answer, 1 + Math.random() * known.answerMs);
  });
});
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));

const counts = new Map();
const watches = new Map();

function count(trial) {
  counts.set(trial, (counts.get(trial) ?? 0) + 1);
  tell(trial);
}

function tell(trial) {
  if ((counts.get(trial) ?? 0) < (watches.get(trial) ?? Number.POSITIVE_INFINITY)) return;
  watches.delete(trial);
  process.send({ reached: trial });
}

process.on('message', ({ answerMs, forget, letGo, watch }) => {
  if (watch !== undefined) {
    watches.set(watch.trial, watch.count);
    tell(watch.trial);
  }
  if (letGo !== undefined) {
    const held = trials.get(letGo)?.held ?? [];
    trials.set(letGo, { answerMs });
    for (const answer of held) setTimeout(() => answer(), 1 + Math.random() * answerMs);
  }
  if (forget !== undefined) trials.delete(forget);
});
process.on('disconnect', () => process.exit(0));
