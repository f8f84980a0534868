// The tools of a destination as they were when they were first seen: what a class that names a tool was given for.

import { type Json, StoreFault, type StreamWrite } from '../store/port.ts';
import type { EngineContext } from './context.ts';

export interface PinnedTool {
  readonly digest: string;
  readonly definition: string;
  readonly readOnlyHint: boolean;
  readonly at: number;
}

export interface SeenTool {
  readonly name: string;
  readonly digest: string;
  readonly definition: string;
  readonly readOnlyHint: boolean;
}

/** One change takes at most so many writes. */
const WRITES_MAX = 16;
/** So many changes travel together: a list of thousands is kept within moments, and others are let in between. */
const CHANGES_MAX = 32;
/** Beyond it the digest is kept, and a difference cannot be shown. */
const DEFINITION_MAX = 64 * 1024;

export class SeenTools {
  readonly #context: EngineContext;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /** Keeps those that were not seen before. @throws {StoreFault} */
  async see(destination: string, tools: readonly SeenTool[]): Promise<ReadonlyMap<string, PinnedTool>> {
    const { environment, store, tenant } = this.#context;
    const exact = tools.filter(({ digest }) => digest !== '');
    const streams = exact.map(({ name }) => streamOfTool(destination, name));
    const known = await store.read(tenant, streams);
    const at = environment.now();
    const pins = new Map<string, PinnedTool>();
    const writes: StreamWrite[] = [];
    for (const [index, { name, digest, definition, readOnlyHint }] of exact.entries()) {
      const record = known[index];
      const kept = definition.length <= DEFINITION_MAX ? definition : '';
      const pin = (record?.state as unknown as PinnedTool) ?? { digest, definition: kept, readOnlyHint, at };
      pins.set(name, pin);
      if (record !== undefined) continue;
      writes.push({
        stream: streamOfTool(destination, name),
        expectedVersion: 0,
        events: [{ type: 'first_seen', digest, at }],
        state: pin as unknown as Json,
      });
    }
    const changes = chunked(writes, WRITES_MAX).map((some) => ({ tenant, at, writes: some }));
    for (const some of chunked(changes, CHANGES_MAX)) {
      const results = await store.commit(some);
      // Another process sees the same list at this moment: what it has kept counts.
      if (results.some(({ outcome }) => outcome !== 'stored')) return this.see(destination, tools);
    }
    return pins;
  }

  async of(destination: string, tool: string): Promise<PinnedTool | undefined> {
    const { store, tenant } = this.#context;
    const [record] = await store.read(tenant, [streamOfTool(destination, tool)]);
    return record?.state as unknown as PinnedTool | undefined;
  }

  /** The same where the store may be down: then nothing is known of how tools were. */
  async seeIfPossible(
    destination: string,
    tools: readonly SeenTool[],
  ): Promise<ReadonlyMap<string, PinnedTool> | undefined> {
    try {
      return await this.see(destination, tools);
    } catch (cause) {
      if (!(cause instanceof StoreFault)) throw cause;
      return undefined;
    }
  }
}

function streamOfTool(destination: string, tool: string): string {
  return `tool:${destination}/${tool}`;
}

function chunked<Item>(items: readonly Item[], size: number): readonly (readonly Item[])[] {
  const chunks: (readonly Item[])[] = [];
  for (let from = 0; from < items.length; from += size) chunks.push(items.slice(from, from + size));
  return chunks;
}
