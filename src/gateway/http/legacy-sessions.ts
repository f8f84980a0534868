// The sessions of one server's clients of the generation up to 2025-11-25: found by the id that only the client was
// told, begun by `initialize`, ended by DELETE or by silence.

import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { McpFrame } from '../../destination/mcp/frame.ts';
import { LEGACY_VERSIONS } from '../../destination/mcp/mcp-headers.ts';
import type { McpUpstream } from '../../destination/mcp/upstream.ts';
import type { CallParts } from '../tool-calls.ts';
import { LegacySession } from './legacy-session.ts';
import { headerOf, sendEmpty, sendRefusal } from './refusals.ts';
import { refused } from './request-guard.ts';

export interface SessionsParts extends Omit<CallParts, 'requester'> {
  /** A connection to the server for one client, not opened yet. */
  readonly openUpstream: () => McpUpstream;
  /** How many sessions are open at most. Default 256. */
  readonly sessionsMax?: number;
}

const SESSIONS_MAX = 256;
const IDLE_MAX_MS = 30 * 60_000;
const SWEEP_MS = 60_000;

export class LegacySessions {
  readonly #parts: SessionsParts;
  readonly #sessionsMax: number;
  readonly #sessions = new Map<string, LegacySession>();
  readonly #ending = new Set<Promise<void>>();
  readonly #sweep: NodeJS.Timeout;

  constructor(parts: SessionsParts) {
    this.#parts = parts;
    this.#sessionsMax = parts.sessionsMax ?? SESSIONS_MAX;
    this.#sweep = setInterval(() => this.#endIdle(), SWEEP_MS);
    this.#sweep.unref();
  }

  async post(
    request: IncomingMessage,
    response: ServerResponse,
    frame: McpFrame,
    requester: string,
  ): Promise<void> {
    const id = headerOf(request, 'mcp-session-id');
    if (id !== undefined) {
      await this.#found(request, response, requester)?.post(request, response, frame);
      return;
    }
    if (frame.head?.method !== 'initialize' || frame.head.id === undefined) {
      sendRefusal(response, refused(400, 'The message belongs to no session: begin one with initialize.'));
    } else if (this.#sessions.size >= this.#sessionsMax) {
      sendRefusal(response, refused(503, `${this.#sessionsMax} sessions are open, and no more are begun.`));
    } else await this.#begin(requester).post(request, response, frame);
  }

  get(request: IncomingMessage, response: ServerResponse, requester: string): void {
    this.#found(request, response, requester)?.get(request, response, headerOf(request, 'last-event-id'));
  }

  delete(request: IncomingMessage, response: ServerResponse, requester: string): void {
    const session = this.#found(request, response, requester);
    if (session === undefined) return;
    this.#end(session);
    sendEmpty(response, 200);
  }

  /** The sessions of one requester end. */
  endOf(requester: string): void {
    for (const session of this.#sessions.values()) if (session.requester === requester) this.#end(session);
  }

  /** Every session ends; resolves when what their clients had called is answered or recorded. */
  async close(): Promise<void> {
    clearInterval(this.#sweep);
    for (const session of this.#sessions.values()) this.#end(session);
    await Promise.allSettled([...this.#ending]);
  }

  #begin(requester: string): LegacySession {
    const id = randomUUID();
    const session: LegacySession = new LegacySession({
      ...this.#parts,
      requester,
      id,
      upstream: this.#parts.openUpstream(),
      onRefused: () => this.#end(session),
    });
    this.#sessions.set(id, session);
    return session;
  }

  /** A session of somebody else is as unknown as one that never was. */
  #found(request: IncomingMessage, response: ServerResponse, requester: string): LegacySession | undefined {
    const id = headerOf(request, 'mcp-session-id');
    const version = headerOf(request, 'mcp-protocol-version');
    const session = id === undefined ? undefined : this.#sessions.get(id);
    if (id === undefined) {
      sendRefusal(response, refused(400, 'The Mcp-Session-Id header is missing.'));
    } else if (session === undefined || session.requester !== requester) {
      sendRefusal(response, refused(404, 'There is no such session (any more): begin one with initialize.'));
    } else if (version !== undefined && !LEGACY_VERSIONS.includes(version)) {
      sendRefusal(response, refused(400, 'The MCP-Protocol-Version is none that a session can have.'));
    } else return session;
    return undefined;
  }

  #end(session: LegacySession): void {
    this.#sessions.delete(session.id);
    const ending: Promise<void> = session.end().finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }

  #endIdle(): void {
    const now = performance.now();
    for (const session of this.#sessions.values()) {
      if (!session.isBusy && now - session.lastSeenAt > IDLE_MAX_MS) this.#end(session);
    }
  }
}
