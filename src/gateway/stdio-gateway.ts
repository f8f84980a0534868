// The MCP door over stdio: one client, whose frames are lines.

import type { Readable, Writable } from 'node:stream';
import { type McpFrame, oneLine, readMcpFrame } from '../destination/mcp/frame.ts';
import { LineFraming } from '../destination/mcp/line-framing.ts';
import type { McpUpstream } from '../destination/mcp/upstream.ts';
import { CODE_PARSE_ERROR, type Refusal } from './client-frame.ts';
import type { ClientPort } from './client-port.ts';
import { ClientSession, type SessionParts } from './client-session.ts';
import { readStatelessGreeting, StatelessLine } from './stateless-line.ts';

export interface StdioGatewayParts extends Omit<SessionParts, 'client'> {
  readonly input: Readable;
  readonly output: Writable;
  /** One more connection to the server, for requests of 2026-07-28 whose client says other things of itself. */
  readonly openShared: (capabilities: string) => McpUpstream;
}

/** What serves the client, once it has said of which generation it is. */
type Served = Pick<ClientSession, 'receive' | 'refuse' | 'end'>;

export class StdioGateway {
  readonly #parts: StdioGatewayParts;
  readonly #client: LineClient;
  #served: Served | undefined;

  constructor(parts: StdioGatewayParts) {
    this.#parts = parts;
    this.#client = new LineClient(parts.output);
  }

  /** Serves until the client has closed its end and every call that it had made is answered. */
  async serve(): Promise<void> {
    let handled: Promise<void> = Promise.resolve();
    const framing = new LineFraming({
      // Copied at once: the bytes may be a view of a chunk that is used again.
      onFrame: (bytes) => {
        handled = this.#receive(readMcpFrame(Buffer.from(bytes)), handled);
      },
      onUnreadable: () => {
        handled = handled.then(() => this.#session().refuse(TOO_LONG));
      },
    });
    try {
      // Where both ways are one socket, its end must not take along what is still to be answered.
      for await (const chunk of this.#parts.input.iterator({ destroyOnReturn: false })) {
        framing.push(chunk as Buffer);
        await handled;
      }
    } catch {
      // A connection that broke has the same end as one that was closed: nothing more comes.
    }
    await handled;
    await this.#session().end();
  }

  async #receive(frame: McpFrame, before: Promise<void>): Promise<void> {
    if (this.#served === undefined) {
      await before;
      this.#served ??= await this.#meet(frame);
    }
    await this.#served.receive(frame);
  }

  /**
   * A client of 2026-07-28 says so in its first request. In front of a server of its generation, its messages pass; one
   * that knows sessions alone is spoken to in its own way.
   */
  async #meet(first: McpFrame): Promise<Served> {
    const { openShared, upstream, ...parts } = this.#parts;
    const greeting = readStatelessGreeting(first);
    if (greeting === undefined) return this.#session();
    upstream.introduce({ prefers: 'modern', clientCapabilities: greeting.capabilities });
    const connection = await upstream.connect();
    if (!connection.connected || upstream.handshake?.method !== 'initialize') return this.#session();
    let isTaken = false;
    const open = (capabilities: string): McpUpstream => {
      if (isTaken || capabilities !== greeting.capabilities) return openShared(capabilities);
      isTaken = true;
      return upstream;
    };
    const line = new StatelessLine({ ...parts, client: this.#client, openShared: open });
    return {
      receive: (frame) => line.receive(frame),
      refuse: (refusal) => line.refuse(refusal),
      end: async () => {
        await line.end();
        // Nothing was asked of the server: nobody else would end what was opened to meet it.
        if (!isTaken) parts.server.detach(parts.server.attach(upstream, async () => undefined));
      },
    };
  }

  #session(): Served {
    return (this.#served ??= new ClientSession({ ...this.#parts, client: this.#client }));
  }
}

const TOO_LONG: Refusal = {
  kind: 'refused',
  id: 'null',
  code: CODE_PARSE_ERROR,
  message: 'The message is longer than this gateway reads.',
};

class LineClient implements ClientPort {
  readonly #output: Writable;

  constructor(output: Writable) {
    this.#output = output;
  }

  answer(_key: string | undefined, frame: string | Buffer, written: (isWritten: boolean) => void = () => {}) {
    if (!this.#output.writable) written(false);
    else this.#write(frame, (cause) => written(cause === undefined || cause === null));
  }

  pass(frame: McpFrame): void {
    if (this.#output.writable) this.#write(frame.bytes);
  }

  /** One write, so that nothing can come between a frame and its terminator. */
  #write(frame: string | Buffer, written?: (cause: Error | null | undefined) => void): void {
    const line = oneLine(frame);
    this.#output.write(typeof line === 'string' ? `${line}\n` : Buffer.concat([line, LINE_FEED]), written);
  }
}

const LINE_FEED = Buffer.from('\n');
