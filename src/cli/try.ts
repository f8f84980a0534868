// `counterfoil try lost-reply`: one story with real processes, told twice: through the gateway, and without it. What
// the destination holds is counted in its own file.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Operation } from '../core/operation.ts';
import { labelOf } from '../core/wording.ts';
import { withLedger } from './data-directory.ts';
import { printable } from './lines.ts';
import { CommandFault, EXIT, print, printJson } from './output.ts';

export interface TryOptions {
  readonly json?: boolean;
  readonly keep?: boolean;
}

const SERVER = fileURLToPath(new URL('./try-server.js', import.meta.url));
const COUNTERFOIL = fileURLToPath(new URL('./counterfoil.js', import.meta.url));
const NOTE = { text: 'The cutover begins at 22:00 UTC.' };
/** An answer that takes longer is none. */
const PATIENCE_MS = 20_000;

const CONFIG = `destination: notes
contracts: [try.contract.yaml]
bindings: [try.binding.yaml]
`;
const BINDING = `binding: 1
id: counterfoil-try
contract: counterfoil-try
server: {name: [counterfoil-try], versions: '>=1.0 <2'}
tools:
  - {tool: add_note, operation: note.add, class: ordinary}
  - {tool: find_notes, class: read}
`;
const CONTRACT = `contract: 1
id: counterfoil-try
destination: {name: Notes, protocol: mcp}
ownership: {owner: counterfoil try, reviewed_on: 2026-11-30, review_by: 2099-12-31}
operations:
  - id: note.add
    match: [add_note]
    effect: create
    identity: [text]
    stamp: {argument: ref}
    acknowledgement: {record: {from: json, path: /id}}
    completion: {kind: synchronous}
    guards: []
    lookups:
      - by: client_reference
        tool: {name: find_notes, arguments: {ref: '{$stamp}'}}
        found:
          items: {from: json, path: /items}
          where: [{path: /ref, equals: '{$stamp}'}]
          record: /id
        consistency: {kind: read_after_write}
        unique: 'no'
        proves: {present: applied, absent: not_applied}
        evidence: {grade: source, source: cli/try-server.ts}
    outcomes: []
    reversals: [{kind: none, restores: nothing, evidence: {grade: source, source: cli/try-server.ts}}]
    limits: {late_arrival: PT1S}
`;

interface Told {
  readonly records: number;
  readonly lostAnswers: number;
  /** What the agent was told, call by call. */
  readonly answers: readonly string[];
}

export async function tryLostReply(options: TryOptions): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'counterfoil-try-'));
  try {
    const without = await told(join(folder, 'without'), false);
    const guarded = await told(join(folder, 'with'), true);
    const operations = await operationsIn(join(folder, 'with', 'data'));
    const [operation] = operations;
    const hasBitten = without.lostAnswers === 1 && guarded.lostAnswers === 1;
    const ok = hasBitten && without.records === 2 && guarded.records === 1 && operations.length === 1;
    const kept = options.keep === true || !ok;
    if (options.json === true) {
      printJson({
        ok,
        withGateway: { ...guarded, operation: operation?.id ?? null, effect: operation?.effect ?? null },
        withoutGateway: without,
        folder: kept ? folder : null,
      });
    } else {
      for (const line of asLines(without, guarded, operation)) print(line);
      if (!ok) print('This is not what should have happened.');
      if (kept) print(`Kept: ${folder} (counterfoil show --last --data ${join(folder, 'with', 'data')})`);
    }
    if (!kept) rmSync(folder, { recursive: true, force: true });
    return ok ? EXIT.done : EXIT.internal;
  } catch (cause) {
    rmSync(folder, { recursive: true, force: true });
    throw cause;
  }
}

function asLines(without: Told, guarded: Told, operation: Operation | undefined): readonly string[] {
  const held = (count: number): string => `${count} ${count === 1 ? 'note' : 'notes'}`;
  return [
    'An agent adds a note. The note is made, its answer is lost, and the agent adds it once more.',
    '',
    `Without the gateway the destination holds ${held(without.records)}.`,
    ...without.answers.map((answer, index) => `  call ${index + 1}: ${printable(answer)}`),
    `Through the gateway it holds ${held(guarded.records)}.`,
    ...guarded.answers.map((answer, index) => `  call ${index + 1}: ${printable(answer)}`),
    ...(operation === undefined ? [] : [`  recorded as ${operation.id}: ${labelOf(operation)}`]),
  ];
}

async function operationsIn(data: string): Promise<readonly Operation[]> {
  return withLedger(data, (ledger) => ledger.readings.recent(10));
}

/** The same two calls: through the gateway, or with the server itself. */
async function told(folder: string, isGuarded: boolean): Promise<Told> {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'gateway.yaml'), CONFIG);
  writeFileSync(join(folder, 'try.binding.yaml'), BINDING);
  writeFileSync(join(folder, 'try.contract.yaml'), CONTRACT);
  const server = [SERVER, folder];
  const gateway = [
    COUNTERFOIL,
    'mcp',
    // Nothing of it is to stay behind.
    '--no-resident',
    '--data',
    join(folder, 'data'),
    '--config',
    join(folder, 'gateway.yaml'),
  ];
  const args = isGuarded ? [...gateway, '--', process.execPath, ...server] : server;
  const answers: string[] = [];
  let client = await Client.start(args);
  for (let count = 0; count < 2; count += 1) {
    const answer = await client.call('add_note', NOTE);
    answers.push(answer ?? 'no answer: the connection ended');
    // As agents do: a connection that has ended is opened again, and the call made again.
    if (answer === undefined && count === 0) client = await Client.start(args);
  }
  await client.end();
  const log = join(folder, 'notes.jsonl');
  const records = existsSync(log) ? readFileSync(log, 'utf8').split('\n').length - 1 : 0;
  return { records, lostAnswers: existsSync(join(folder, 'answer-lost')) ? 1 : 0, answers };
}

interface Response {
  readonly id?: number;
  readonly result?: { readonly content?: readonly { readonly text?: string }[] };
  readonly error?: { readonly message: string };
}

/** A client that speaks just enough of the protocol. */
class Client {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (response: Response | undefined) => void>();
  readonly #ended: Promise<void>;
  #id = 0;
  #said = '';
  #isEnded = false;

  private constructor(args: readonly string[]) {
    this.#child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      this.#said += chunk;
    });
    this.#child.stdin?.on('error', () => {});
    this.#ended = new Promise((resolve) => {
      this.#child.once('close', () => {
        this.#isEnded = true;
        for (const resolveAnswer of this.#waiting.values()) resolveAnswer(undefined);
        this.#waiting.clear();
        resolve();
      });
      this.#child.once('error', () => resolve());
    });
    if (this.#child.stdout === null) throw new Error('Assertion: a child without a standard output.');
    createInterface({ input: this.#child.stdout }).on('line', (line) => {
      const response = JSON.parse(line) as Response;
      if (response.id === undefined) return;
      this.#waiting.get(response.id)?.(response);
      this.#waiting.delete(response.id);
    });
  }

  static async start(args: readonly string[]): Promise<Client> {
    const client = new Client(args);
    const greeting = await client.#request('initialize', {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'counterfoil-try', version: '1' },
    });
    if (greeting === undefined) {
      throw new CommandFault(
        EXIT.internal,
        `What the story needs could not be started: ${printable(client.#said)}`,
      );
    }
    client.#send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    return client;
  }

  /** `undefined` when the connection ended before an answer came. */
  async call(name: string, args: object): Promise<string | undefined> {
    const response = await this.#request('tools/call', { name, arguments: args });
    if (response === undefined) return undefined;
    return response.error?.message ?? response.result?.content?.[0]?.text ?? '';
  }

  async end(): Promise<void> {
    this.#child.stdin?.end();
    await this.#ended;
  }

  #request(method: string, params: object): Promise<Response | undefined> {
    this.#id += 1;
    const id = this.#id;
    if (this.#isEnded) return Promise.resolve(undefined);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#child.kill('SIGKILL');
        reject(
          new CommandFault(EXIT.internal, `No answer to ${method} came within ${PATIENCE_MS / 1_000} s.`),
        );
      }, PATIENCE_MS);
      this.#waiting.set(id, (response) => {
        clearTimeout(timer);
        resolve(response);
      });
      this.#send({ jsonrpc: '2.0', id, method, params });
    });
  }

  #send(message: object): void {
    this.#child.stdin?.write(`${JSON.stringify(message)}\n`);
  }
}
