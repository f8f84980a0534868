// The processes of one story: an agent's client, the gateway with a data directory of its own, the destination
// with its log. A world without a gateway has the client talk to the destination itself, as most do today.

import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pass } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js';
import { runOnTerminal } from './terminal.mjs';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));

export const COUNTERFOIL = here('../dist/cli/counterfoil.js');
const SERVER = here('cutover-server.mjs');
const CONFIG = here('gateway.yaml');

/** No secret: it is the demo owner's, of ledgers that are removed afterwards. */
const PASSPHRASE = 'the owner of the demo';

/** Long enough for any answer that is going to come; what takes longer is a fault of the story. */
const PLENTY_MS = 20_000;
const POLL_MS = 10;
const RECONNECT_PAUSE_MS = 100;

/**
 * @param options.folder a new folder, for everything that this world writes
 * @param options.gateway false: the client talks to the destination itself
 * @param options.data the gateway's data directory; `folder/data` when absent
 * @param options.store `postgres://…`: the ledger is there, in a schema of its own
 * @param options.config the gateway's configuration; `demo/gateway.yaml` when absent
 * @param options.env what the gateway and every command have in their environment beside the usual
 */
export function makeWorld(options) {
  return new World(options);
}

/** What `counterfoil store use` would write, and the first gateway makes the tables. */
function placeLedger(data, store) {
  const file = join(data, 'store.json');
  if (existsSync(file)) return undefined;
  const url = new URL(store);
  const schema = `story_${randomBytes(8).toString('hex')}`;
  url.searchParams.set('schema', schema);
  mkdirSync(data, { recursive: true, mode: 0o700 });
  writeFileSync(file, JSON.stringify({ url: url.href }), { mode: 0o600 });
  return schema;
}

class World {
  #agents = [];
  #faults = [];
  #kills = 0;
  #hasPassphrase = false;

  constructor({ folder, gateway = true, data, store, config = CONFIG, env = {} }) {
    mkdirSync(folder, { recursive: true });
    this.folder = folder;
    this.gateway = gateway;
    this.data = data ?? join(folder, 'data');
    this.config = config;
    this.env = env;
    this.log = join(folder, 'destination.log');
    if (gateway && store !== undefined) this.schema = placeLedger(this.data, store);
    this.faults = join(folder, 'faults.json');
    this.plan();
  }

  // ── The destination ──────────────────────────────────────────────────────────────────────────────────────

  /** Adds faults that are to fire from now on; the destination reads them at each call. */
  plan(...faults) {
    for (const fault of faults) this.#faults.push({ id: `fault-${this.#faults.length + 1}`, ...fault });
    writeFileSync(`${this.faults}.new`, JSON.stringify(this.#faults));
    renameSync(`${this.faults}.new`, this.faults);
  }

  /** From now on none of the faults that were planned for a tool fires any more. */
  heal(on) {
    this.#faults = this.#faults.filter((fault) => fault.on !== on);
    this.plan();
  }

  /** Everything that the destination has logged, read from its file. */
  entries() {
    if (!existsSync(this.log)) return [];
    const lines = readFileSync(this.log, 'utf8').split('\n');
    return lines.slice(0, -1).map((line) => JSON.parse(line));
  }

  /** What the destination holds: the records that a tool made, or all. */
  records(tool) {
    return this.entries()
      .filter((entry) => entry.event === 'record' && (tool === undefined || entry.tool === tool))
      .map((entry) => entry.record);
  }

  /** The planned faults that fired, and the processes that ended in the middle of their work. */
  faultsFired() {
    return this.entries().filter(({ event }) => event === 'fault').length + this.#kills;
  }

  /** Somebody saw a process end that should have gone on. */
  countKill() {
    this.#kills += 1;
  }

  /** Ends the destination's process as a power cut would, and waits until its parent has noticed. */
  async killDestination() {
    const { pid } = this.entries().findLast(({ event }) => event === 'started');
    process.kill(pid, 'SIGKILL');
    await until(() => !isThere(pid), `the end of process ${pid}`);
    this.countKill();
  }

  // ── The client ───────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Starts a client and what it talks to.
   * @param options.crashAt a stopping point at which the gateway ends itself by SIGKILL
   */
  async agent(options = {}) {
    const agent = new Agent(this, options);
    this.#agents.push(agent);
    await agent.connect();
    return agent;
  }

  command(crashAt) {
    const server = [SERVER, this.log, this.faults];
    if (!this.gateway) return { command: process.execPath, args: server };
    return {
      command: process.execPath,
      args: [
        COUNTERFOIL,
        'mcp',
        // The process that is killed here must be the one that sends.
        '--no-resident',
        '--config',
        this.config,
        '--data',
        this.data,
        '--',
        process.execPath,
        ...server,
      ],
      env: { ...this.env, ...(crashAt === undefined ? {} : { COUNTERFOIL_DRILL_CRASH_AT: crashAt }) },
    };
  }

  async close() {
    await Promise.allSettled(this.#agents.map((agent) => agent.close()));
  }

  // ── The ledger, through its own commands ─────────────────────────────────────────────────────────────────

  /** Runs `counterfoil` with this world's data directory. It never rejects for an exit code. */
  async counterfoil(args, env = {}) {
    const ran = await new Promise((resolve) => {
      execFile(
        process.execPath,
        [COUNTERFOIL, ...args, '--data', this.data],
        { env: { ...process.env, ...this.env, ...env }, timeout: PLENTY_MS },
        (error, stdout, stderr) =>
          resolve({ code: error === null ? 0 : error.code, signal: error?.signal ?? null, stdout, stderr }),
      );
    });
    return { ...ran, json: parse(ran.stdout) };
  }

  /** The operation with its label, sentence, target, digest and history; `undefined` when there is none. */
  async show(id = '--last') {
    const { json } = await this.counterfoil(['show', id, '--json']);
    return json?.operation === undefined ? undefined : json;
  }

  /**
   * Decides as the declared owner of this world: a passphrase that the story sets, typed on a terminal of its own.
   * The record names that strength; that a program typed it, it cannot know.
   */
  async approve(id, digest, by, env = {}) {
    return this.asOwner(['approve', id, '--digest', digest, '--by', by, '--json'], env);
  }

  /** A command that asks for the passphrase. */
  async asOwner(args, env = {}) {
    if (!this.#hasPassphrase) {
      this.#hasPassphrase = true;
      const set = await this.onTerminal(['passphrase', 'set'], [PASSPHRASE, PASSPHRASE]);
      if (set.code !== 0) throw new Error(`The passphrase could not be set: ${set.screen}${set.stderr}`);
    }
    return this.onTerminal(args, [PASSPHRASE], env);
  }

  /** The same with a controlling terminal, on which the answers are typed, each when it is asked for. */
  async onTerminal(args, answers, env = {}) {
    const ran = await runOnTerminal([COUNTERFOIL, ...args, '--data', this.data], answers, {
      env: { ...process.env, ...this.env, ...env },
      timeoutMs: PLENTY_MS,
    });
    return { ...ran, json: parse(ran.stdout) };
  }

  async deny(id, digest, by, reason) {
    return this.counterfoil(['deny', id, '--digest', digest, '--by', by, '--reason', reason, '--json']);
  }
}

class Agent {
  #world;
  #crashAt;
  #client;
  #transport;
  #isConnected = false;
  #leaving = false;
  #stderr;

  constructor(world, { crashAt }) {
    this.#world = world;
    this.#crashAt = crashAt;
    this.lost = new Promise((resolve) => {
      this.reportLost = resolve;
    });
  }

  async connect() {
    const client = new Client({ name: 'cutover-agent', version: '1.0.0' });
    this.#stderr ??= openSync(join(this.#world.folder, 'stderr.log'), 'a');
    const transport = new StdioClientTransport({
      ...this.#world.command(this.#crashAt),
      stderr: this.#stderr,
    });
    client.onclose = () => {
      this.#isConnected = false;
      if (this.#leaving) return;
      if (this.#crashAt !== undefined) this.#world.countKill();
      this.reportLost();
    };
    await client.connect(transport, { timeout: PLENTY_MS });
    this.#client = client;
    this.#transport = transport;
    this.#isConnected = true;
  }

  /**
   * Calls a tool as an impatient framework does: after `patienceMs` without an answer, or when the connection
   * has ended, the same call is made again, `tries` times in all.
   * @param options.run,step,single,occurrence,call what an orchestrator says about the call
   */
  async call(tool, args, options = {}) {
    const { patienceMs = PLENTY_MS, tries = 1, ...said } = options;
    for (let count = 1; ; count += 1) {
      try {
        return { ...(await this.#callOnce(tool, args, patienceMs, said)), tries: count };
      } catch (error) {
        if (!isLostAnswer(error) || count >= tries) throw error;
        if (!this.#isConnected) await pass(RECONNECT_PAUSE_MS);
      }
    }
  }

  async #callOnce(tool, args, patienceMs, said) {
    if (!this.#isConnected) await this.connect();
    const meta = Object.entries(said).map(([name, value]) => [`counterfoil/${name}`, value]);
    const result = await this.#client.callTool(
      { name: tool, arguments: args, ...(meta.length === 0 ? {} : { _meta: Object.fromEntries(meta) }) },
      undefined,
      { timeout: patienceMs },
    );
    const texts = result.content.map((block) => block.text);
    const facts = result._meta?.['counterfoil/operation'];
    return {
      text: texts[0] ?? '',
      texts,
      isError: result.isError === true,
      operation: facts?.operation,
      facts,
      result,
    };
  }

  /** The gateway's process (or the destination's, where there is no gateway) is ended from outside. */
  async kill() {
    this.#leaving = true;
    const { pid } = this.#transport;
    process.kill(pid, 'SIGKILL');
    await until(() => !isThere(pid), `the end of process ${pid}`);
    this.#world.countKill();
  }

  async close() {
    this.#leaving = true;
    await this.#client?.close();
    if (this.#stderr !== undefined) closeSync(this.#stderr);
    this.#stderr = undefined;
  }
}

function isLostAnswer(error) {
  if (!(error instanceof McpError)) return false;
  return error.code === ErrorCode.RequestTimeout || error.code === ErrorCode.ConnectionClosed;
}

function isThere(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Waits until a condition holds; what it waits for is named when it never does. */
export async function until(holds, what, ms = PLENTY_MS) {
  const deadline = performance.now() + ms;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`Waited ${ms} ms in vain for ${what}.`);
    await pass(POLL_MS);
  }
}

/** A promise that is expected soon; what it stands for is named when it does not come. */
export async function within(promise, what, ms = PLENTY_MS) {
  const gaveUp = new AbortController();
  const late = pass(ms, undefined, { signal: gaveUp.signal }).then(() => {
    throw new Error(`Waited ${ms} ms in vain for ${what}.`);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    late.catch(() => {});
    gaveUp.abort();
  }
}
