// An MCP client by the official SDK, connected to what an entry of a client's configuration starts. Each line that
// comes is kept as it came, so that two answers can be compared byte for byte.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';

const PLENTY_MS = 30_000;

/** @param {{ command: string, args?: readonly string[], env?: Record<string, string> }} entry */
export async function connect(entry, env) {
  const transport = new KeepingTransport(entry, env);
  const client = new Client({ name: 'first-minutes', version: '1.0.0' });
  await client.connect(transport, { timeout: PLENTY_MS });
  const options = { timeout: PLENTY_MS };
  return {
    async tools() {
      const { tools } = await client.listTools({}, options);
      return tools;
    },
    /** The result, and the bytes of the line that it came in. */
    async call(tool, args) {
      const result = await client.callTool({ name: tool, arguments: args }, undefined, options);
      return { result, text: result.content?.[0]?.text ?? '', line: transport.lastAnswer() };
    },
    close: () => client.close(),
    said: () => transport.said,
  };
}

/** The SDK's own transport over stdio parses each line and lets it go. */
class KeepingTransport {
  #entry;
  #env;
  #child;
  #rest = '';
  #lastAnswer = '';
  said = '';

  constructor(entry, env) {
    this.#entry = entry;
    this.#env = env;
  }

  async start() {
    const { command, args = [], env } = this.#entry;
    this.#child = spawn(command, args, { env: { ...this.#env, ...env }, stdio: 'pipe' });
    this.#child.stdout.setEncoding('latin1').on('data', (chunk) => this.#read(chunk));
    this.#child.stderr.setEncoding('utf8').on('data', (chunk) => {
      this.said += chunk;
    });
    this.#child.stdin.on('error', () => {});
    this.#child.once('close', () => this.onclose?.());
    await once(this.#child, 'spawn');
  }

  #read(chunk) {
    const lines = (this.#rest + chunk).split('\n');
    this.#rest = lines.pop();
    for (const line of lines) {
      const message = JSON.parse(Buffer.from(line, 'latin1').toString('utf8'));
      if (message.id !== undefined && message.method === undefined) this.#lastAnswer = line;
      this.onmessage?.(message);
    }
  }

  /** Calls are made one after the other, so that it is the answer to the last of them. */
  lastAnswer() {
    return this.#lastAnswer;
  }

  async send(message) {
    this.#child.stdin.write(`${JSON.stringify(message)}\n`);
  }

  /** As a client does that is closed: the end of its input, and a signal only to what stays. */
  async close() {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const closed = once(this.#child, 'close');
    this.#child.stdin.end();
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), PLENTY_MS);
    await closed;
    clearTimeout(timer);
  }
}
