// The agent's client in the stories of `try` and `demo`: it speaks the protocol on the wire, and needs no SDK.

import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { printable } from './lines.ts';
import { CommandFault, EXIT } from './output.ts';

/** An answer that takes longer is none. */
const PATIENCE_MS = 20_000;

interface Response {
  readonly id?: number;
  readonly result?: { readonly content?: readonly { readonly text?: string }[] };
  readonly error?: { readonly message: string };
}

/** A client that speaks just enough of the protocol. */
export class WireClient {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (response: Response | undefined) => void>();
  readonly #ended: Promise<void>;
  #id = 0;
  #said = '';
  #isEnded = false;

  private constructor(args: readonly string[], env: NodeJS.ProcessEnv) {
    this.#child = spawn(process.execPath, args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
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

  /** @param args for `node` */
  static async start(args: readonly string[], env: NodeJS.ProcessEnv = process.env): Promise<WireClient> {
    const client = new WireClient(args, env);
    const greeting = await client.#request('initialize', {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'counterfoil-story', version: '1' },
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
