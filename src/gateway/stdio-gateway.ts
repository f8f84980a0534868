// The MCP door over stdio: one client, whose frames are lines.

import type { Readable, Writable } from 'node:stream';
import { type McpFrame, oneLine, readMcpFrame } from '../destination/mcp/frame.ts';
import { LineFraming } from '../destination/mcp/line-framing.ts';
import { CODE_PARSE_ERROR } from './client-frame.ts';
import type { ClientPort } from './client-port.ts';
import { ClientSession, type SessionParts } from './client-session.ts';

export interface StdioGatewayParts extends Omit<SessionParts, 'client'> {
  readonly input: Readable;
  readonly output: Writable;
}

export class StdioGateway {
  readonly #input: Readable;
  readonly #session: ClientSession;

  constructor({ input, output, ...parts }: StdioGatewayParts) {
    this.#input = input;
    this.#session = new ClientSession({ ...parts, client: new LineClient(output) });
  }

  /** Serves until the client has closed its end and every call that it had made is answered. */
  async serve(): Promise<void> {
    const session = this.#session;
    let handled: Promise<void> = Promise.resolve();
    const framing = new LineFraming({
      // Copied at once: the bytes may be a view of a chunk that is used again.
      onFrame: (bytes) => {
        handled = session.receive(readMcpFrame(Buffer.from(bytes)));
      },
      onUnreadable: () =>
        session.refuse({
          kind: 'refused',
          id: 'null',
          code: CODE_PARSE_ERROR,
          message: 'The message is longer than this gateway reads.',
        }),
    });
    try {
      // Where both ways are one socket, its end must not take along what is still to be answered.
      for await (const chunk of this.#input.iterator({ destroyOnReturn: false })) {
        framing.push(chunk as Buffer);
        await handled;
      }
    } catch {
      // A connection that broke has the same end as one that was closed: nothing more comes.
    }
    await session.end();
  }
}

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
