// Makes one write through an installed package, as a user would: `npx counterfoil mcp -- SERVER`, spoken to in
// JSON lines. Counts at the destination, then asks the ledger.
//
//   node test/pack/one-write.mjs FOLDER     where the package was installed

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const folder = resolve(process.argv[2] ?? '.');
const log = join(folder, 'notes.jsonl');
const data = join(folder, 'data');
const config = join(folder, 'gateway.yaml');
const server = fileURLToPath(new URL('notes-server.mjs', import.meta.url));
const REPLY_TIMEOUT_MS = 30_000;

writeFileSync(log, '');
writeFileSync(config, 'destination: notes\ntools:\n  create_note: {class: ordinary, repeat: unique}\n');

const result = await writeOne({ title: 'Freeze window' });
assert.equal(result.isError ?? false, false, `the write was answered with ${JSON.stringify(result)}`);

const records = readFileSync(log, 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line));
assert.deepEqual(records, [{ id: 'note-1', title: 'Freeze window' }], 'what the destination holds');

const shown = spawnSync('npx', ['--no', '--', 'counterfoil', 'show', '--last', '--json', '--data', data], {
  cwd: folder,
  encoding: 'utf8',
});
assert.equal(shown.status, 11, `show ended with ${shown.status} in place of 11 (accepted): ${shown.stderr}`);
const { operation, payload } = JSON.parse(shown.stdout);
assert.equal(operation.destination, 'notes');
assert.equal(operation.tool, 'create_note');
assert.equal(operation.stage, 'closed');
assert.equal(operation.effect, 'accepted');
assert.equal(payload, '{"title":"Freeze window"}');

process.stdout.write(
  `${operation.id}: ${operation.effect}, 1 record at the destination\n1 passed, 0 failed\n`,
);

/** One session: handshake, list, call, end of input. Every line of the gateway must be JSON-RPC. */
async function writeOne(args) {
  const command = [
    '--no',
    '--',
    'counterfoil',
    'mcp',
    '--config',
    config,
    '--data',
    data,
    '--',
    process.execPath,
    server,
    log,
  ];
  // The process that it leaves behind, for other clients, is not to wait for any.
  const env = { ...process.env, COUNTERFOIL_RESIDENT_IDLE: 'PT0.1S' };
  const gateway = spawn('npx', command, { cwd: folder, env, stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(gateway, 'close');
  const lines = createInterface({ input: gateway.stdout })[Symbol.asyncIterator]();
  const tell = (message) => gateway.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const ask = async (id, method, params) => {
    tell({ id, method, params });
    for (;;) {
      const { value: line, done } = await withinTime(lines.next(), method);
      assert.equal(done, false, `the gateway ended before it answered ${method}`);
      const message = JSON.parse(line);
      assert.equal(message.jsonrpc, '2.0', `not JSON-RPC: ${line}`);
      if (message.id !== id) continue;
      assert.equal(message.error, undefined, `${method} was answered with ${line}`);
      return message.result;
    }
  };
  try {
    const clientInfo = { name: 'one-write', version: '1.0.0' };
    await ask(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
    tell({ method: 'notifications/initialized' });
    const { tools } = await ask(2, 'tools/list', {});
    assert.ok(
      tools.some(({ name }) => name === 'create_note'),
      'the server’s own tool is listed',
    );
    const answer = await ask(3, 'tools/call', { name: 'create_note', arguments: args });
    gateway.stdin.end();
    const [code] = await withinTime(ended, 'the end of its input');
    assert.equal(code, 0, 'the exit code of the gateway');
    return answer;
  } finally {
    gateway.kill();
  }
}

async function withinTime(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`no answer to ${what} in ${REPLY_TIMEOUT_MS} ms`)),
      REPLY_TIMEOUT_MS,
    );
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
