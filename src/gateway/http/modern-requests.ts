// The requests of one server's clients of 2026-07-28 over HTTP: each is a POST, checked against its headers.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { McpFrame } from '../../destination/mcp/frame.ts';
import { nameOfRequest, paramHeadersOf } from '../../destination/mcp/mcp-headers.ts';
import { readClientMessage, unusableId } from '../client-frame.ts';
import { type StatelessParts, type StatelessRequest, StatelessRequests } from '../stateless-requests.ts';
import { ModernAnswer } from './modern-answer.ts';
import { mirrorProblem, readModernRequest } from './modern-request.ts';
import { type HttpRefusal, sendEmpty, sendRefusal } from './refusals.ts';
import { accepts } from './request-guard.ts';

export class ModernRequests {
  readonly #parts: StatelessParts;
  readonly #requests: StatelessRequests;

  constructor(parts: StatelessParts) {
    this.#parts = parts;
    this.#requests = new StatelessRequests(parts);
  }

  async post(
    request: IncomingMessage,
    response: ServerResponse,
    frame: McpFrame,
    requester: string,
  ): Promise<void> {
    const message = readClientMessage(frame, () => false);
    if (message.kind === 'notification') {
      sendEmpty(response, 202);
      return;
    }
    if (message.kind !== 'request' || message.key === undefined) {
      const refusal =
        message.kind === 'refused'
          ? message
          : message.kind === 'request'
            ? unusableId()
            : { id: 'null', code: -32600, message: 'This generation has no answers from clients.' };
      const { id, code, message: why } = refusal;
      sendRefusal(response, { status: 400, id, code, message: why });
      return;
    }
    const read = readModernRequest(request, frame, { ...message, key: message.key });
    if (!read.ok) {
      sendRefusal(response, read.refusal);
      return;
    }
    const answer = new ModernAnswer(response, accepts(request, 'text/event-stream'));
    const asked = read.request;
    await this.#requests.serve(asked, requester, answer, () => this.#mirrorProblem(request, asked));
  }

  /** Subscriptions end; what was called is answered or recorded. */
  async close(): Promise<void> {
    await this.#requests.close();
  }

  async #mirrorProblem(request: IncomingMessage, asked: StatelessRequest): Promise<HttpRefusal | undefined> {
    const { server } = this.#parts;
    if (!server.isConnected()) await server.connect();
    const name = nameOfRequest('tools/call', asked.params) ?? '';
    const headers = paramHeadersOf(server.tools.get(name)?.inputSchema);
    return headers === undefined ? undefined : mirrorProblem(request, asked, headers);
  }
}
