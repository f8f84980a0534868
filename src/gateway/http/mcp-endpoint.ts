// One server behind one path of the HTTP door: which generation a request is of, and who answers it.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { oneLine, readMcpFrame } from '../../destination/mcp/frame.ts';
import type { StatelessParts } from '../stateless-requests.ts';
import { LegacySessions, type SessionsParts } from './legacy-sessions.ts';
import { isModern } from './modern-request.ts';
import { ModernRequests } from './modern-requests.ts';
import { readBody } from './read-body.ts';
import { sendRefusal } from './refusals.ts';
import { mediaProblem, refused } from './request-guard.ts';

export interface EndpointParts extends SessionsParts, StatelessParts {
  readonly bodyMaxBytes?: number;
}

/** What one server's clients may take up together. */
export type EndpointLimits = Pick<EndpointParts, 'sessionsMax' | 'connectionsMax'>;

const BODY_MAX_BYTES = 16 * 1024 * 1024;

export class McpEndpoint {
  readonly #parts: EndpointParts;
  readonly #sessions: LegacySessions;
  readonly #requests: ModernRequests;

  constructor(parts: EndpointParts) {
    this.#parts = parts;
    this.#sessions = new LegacySessions(parts);
    this.#requests = new ModernRequests(parts);
  }

  async handle(request: IncomingMessage, response: ServerResponse, requester: string): Promise<void> {
    switch (request.method) {
      case 'POST':
        await this.#post(request, response, requester);
        return;
      case 'GET':
        this.#sessions.get(request, response, requester);
        return;
      case 'DELETE':
        this.#sessions.delete(request, response, requester);
        return;
      default:
        sendRefusal(response, refused(405, 'Only POST, GET and DELETE are served.', { allow: ALLOWED }));
    }
  }

  /** Who asks may ask no more. */
  endSessionsOf(requester: string): void {
    this.#sessions.endOf(requester);
  }

  async close(): Promise<void> {
    await Promise.all([this.#sessions.close(), this.#requests.close()]);
  }

  async #post(request: IncomingMessage, response: ServerResponse, requester: string): Promise<void> {
    const problem = mediaProblem(request);
    if (problem !== undefined) {
      sendRefusal(response, problem);
      return;
    }
    const maxBytes = this.#parts.bodyMaxBytes ?? BODY_MAX_BYTES;
    const body = await readBody(request, maxBytes);
    if (body.read === 'too_long') {
      const message = `The message is longer than ${maxBytes} bytes. It was not handled.`;
      sendRefusal(response, refused(413, message, { connection: 'close' }));
      return;
    }
    if (body.read === 'cut') return;
    const frame = readMcpFrame(oneLine(body.bytes));
    const generation = isModern(request, frame) ? this.#requests : this.#sessions;
    await generation.post(request, response, frame, requester);
  }
}

const ALLOWED = 'POST, GET, DELETE';
