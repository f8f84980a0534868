// Writes that passed unrecorded in `observe`: counted while nothing can be stored, and recorded afterwards.

import { StoreFault } from '../store/port.ts';
import { type EngineContext, newId } from './context.ts';

/** Writes of one destination that passed without an operation, in one stretch of time. */
export interface Gap {
  readonly destination: string;
  readonly from: number;
  readonly to: number;
  /** How many writes of each tool passed. */
  readonly tools: { readonly [tool: string]: number };
  readonly reasons: readonly string[];
}

const RETRY_MS = 1_000;
const READ_MAX = 1_000;

export class Gaps {
  readonly #context: EngineContext;
  readonly #open = new Map<string, Gap>();
  #cancelTimer: (() => void) | undefined;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  note(destination: string, tool: string, reason: string): void {
    const at = this.#context.environment.now();
    const earlier = this.#open.get(destination);
    const { tools = {}, reasons = [] }: Partial<Gap> = earlier ?? {};
    this.#open.set(destination, {
      destination,
      from: earlier?.from ?? at,
      to: at,
      tools: { ...tools, [tool]: (tools[tool] ?? 0) + 1 },
      reasons: reasons.includes(reason) ? reasons : [...reasons, reason],
    });
    this.#context.report(`A write to ${destination} passed unrecorded (observe): ${reason}.`);
    this.#schedule();
  }

  /** What is recorded of them, the newest first. */
  async all(): Promise<readonly Gap[]> {
    const { store, tenant } = this.#context;
    const records = await store.streams({ tenant, kind: 'gap', newest: true, limit: READ_MAX });
    return records.map((record) => record.state as unknown as Gap);
  }

  async close(): Promise<void> {
    this.#cancelTimer?.();
    await this.#flush();
    for (const { destination, tools } of this.#open.values()) {
      this.#context.report(`A gap could not be recorded: ${JSON.stringify(tools)} passed to ${destination}.`);
    }
  }

  #schedule(): void {
    this.#cancelTimer ??= this.#context.environment.after(RETRY_MS, () => {
      this.#cancelTimer = undefined;
      void this.#flush().then(() => {
        if (this.#open.size > 0) this.#schedule();
      });
    });
  }

  async #flush(): Promise<void> {
    const { environment, store, tenant } = this.#context;
    for (const [destination, gap] of [...this.#open]) {
      this.#open.delete(destination);
      try {
        const stream = `gap:${newId(this.#context, 'gap')}`;
        const event = { type: 'passed_unrecorded', ...gap };
        const write = { stream, expectedVersion: 0, events: [event], state: { ...gap } };
        await store.commit([{ tenant, at: environment.now(), writes: [write] }]);
      } catch (cause) {
        if (!(cause instanceof StoreFault)) throw cause;
        this.#open.set(destination, joined(gap, this.#open.get(destination)));
      }
    }
  }
}

/** Writes that passed while an earlier gap was being stored are part of it. */
function joined(gap: Gap, later: Gap | undefined): Gap {
  if (later === undefined) return gap;
  const tools: { [tool: string]: number } = { ...gap.tools };
  for (const [tool, count] of Object.entries(later.tools)) tools[tool] = (tools[tool] ?? 0) + count;
  return { ...gap, to: later.to, tools, reasons: [...new Set([...gap.reasons, ...later.reasons])] };
}
