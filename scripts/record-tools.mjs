// Lists the tools of an MCP server over stdio, as a record for the tests of the bindings: names, digests, hints, and the
// arguments of each tool. Nothing is called. The texts of the vendor are left out.
//
//   node scripts/record-tools.mjs PACKAGE VERSION DAY -- COMMAND… > test/contracts/recorded/BINDING.json
//
// Before the command, `env NAME=VALUE` gives a server the token that it wants to see: any will do for a list.

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { isProgram, ROOT } from './processes.mjs';
import { setUpOrExit } from './setup.mjs';

const PATIENCE_MS = 60_000;
const HINTS = ['readOnlyHint', 'destructiveHint', 'idempotentHint'];

/**
 * @param {readonly string[]} command what starts the server
 * @returns {Promise<{ serverInfo: { name: string, version: string }, tools: object[] }>} as the server gives them
 */
export async function listTools([command, ...args]) {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'ignore'] });
  const waiting = new Map();
  const fail = (why) => {
    for (const { reject } of waiting.values()) reject(new Error(why));
    waiting.clear();
  };
  child.once('error', ({ message }) => fail(`It could not be started: ${message}`));
  child.once('exit', (code) => fail(`It ended with ${code} before it had answered.`));
  child.stdin.on('error', () => {});
  createInterface({ input: child.stdout }).on('line', (line) => {
    const message = parsed(line);
    const open = message?.method === undefined ? waiting.get(message?.id) : undefined;
    if (open === undefined) return;
    waiting.delete(message.id);
    if (message.error === undefined) open.resolve(message.result);
    else open.reject(new Error(`It answered ${JSON.stringify(message.error)}.`));
  });
  const write = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  let id = 0;
  const ask = (method, params) =>
    new Promise((resolve, reject) => {
      id += 1;
      waiting.set(id, { resolve, reject });
      write({ id, method, params });
    });
  const timer = setTimeout(() => fail('It did not answer in time.'), PATIENCE_MS);
  try {
    const { serverInfo } = await ask('initialize', {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'counterfoil-record', version: '1' },
    });
    write({ method: 'notifications/initialized' });
    const tools = [];
    let cursor;
    do {
      const page = await ask('tools/list', cursor === undefined ? {} : { cursor });
      tools.push(...page.tools);
      cursor = page.nextCursor;
    } while (cursor);
    return { serverInfo, tools };
  } finally {
    clearTimeout(timer);
    child.kill();
  }
}

function parsed(line) {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/** What the tests need of one tool. */
export function recordedTool(tool, digest) {
  const { properties = {}, required = [] } = tool.inputSchema ?? {};
  const hints = HINTS.filter((hint) => tool.annotations?.[hint] !== undefined);
  return {
    name: tool.name,
    digest,
    hints: Object.fromEntries(hints.map((hint) => [hint, tool.annotations[hint]])),
    arguments: Object.keys(properties),
    required,
  };
}

if (isProgram(import.meta.url)) {
  await setUpOrExit();
  const { toolDigest } = await import(pathToFileURL(join(ROOT, 'dist/contracts/compile.js')).href);
  const [name, version, on, dashes, ...command] = process.argv.slice(2);
  if (dashes !== '--' || command.length === 0) {
    process.stderr.write('Usage: node scripts/record-tools.mjs PACKAGE VERSION DAY -- COMMAND…\n');
    process.exit(2);
  }
  const { serverInfo, tools } = await listTools(command);
  const record = {
    package: name,
    version,
    on,
    serverInfo: { name: serverInfo.name, version: serverInfo.version },
    tools: tools.map((tool) => recordedTool(tool, toolDigest(tool))),
  };
  process.stdout.write(`${JSON.stringify(record, null, 2)}\n`);
}
