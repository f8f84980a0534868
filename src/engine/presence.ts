// Which workers are alive: a beat for each, watched on the watcher's own clock, and the operating system's
// word for processes of this machine. No time is ever compared between machines.

import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import type { Json, Requirement } from '../store/port.ts';
import type { EngineContext } from './context.ts';

interface WorkerState {
  readonly beat: number;
  /** Machine, boot and process space, as this machine names them; equal only where process ids are shared. */
  readonly host: string;
  readonly process: number;
}

interface Watched {
  readonly beat: number;
  /** The watcher's monotonic instant at which this beat was first seen. */
  readonly seenAt: number;
}

/** Watching begins anew when there are more: claims are taken over later then, never sooner. */
const WATCHED_MAX = 10_000;

export class Presence {
  readonly #context: EngineContext;
  readonly #host = hostIdentity();
  readonly #watched = new Map<string, Watched>();
  #version = 0;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /**
   * Shows that this worker lives: one commit, made while it has something out. A beat is named by the version that it
   * makes, so that after a commit whose fate was unknown the next one is another one, whatever became of that.
   */
  async beat(): Promise<void> {
    const { environment, store, tenant, worker } = this.#context;
    for (;;) {
      const state: WorkerState = { beat: this.#version + 1, host: this.#host, process: ownProcess() };
      const [result] = await store.commit([
        {
          tenant,
          at: environment.now(),
          writes: [
            {
              stream: `worker:${worker}`,
              expectedVersion: this.#version,
              events: [],
              state: state as unknown as Json,
            },
          ],
        },
      ]);
      if (result?.outcome === 'stored') {
        this.#version += 1;
        return;
      }
      // Only after a commit whose fate was unknown and that was stored after all.
      if (result?.outcome === 'stale') this.#version = result.version;
    }
  }

  /**
   * Whether a worker has lost a claim: its process is gone from this machine, or its beat has stood still for
   * the lease on this process's own clock — counted from when this claim was first seen, because a worker
   * beats only while it has something out.
   * @returns what must still be so where the claim is taken, since it may beat again until then; `undefined` while it has
   *   not lost it
   */
  async goneBy(worker: string, claim: string): Promise<Requirement | undefined> {
    const { environment, settings, store, tenant } = this.#context;
    // Before it is asked: an answer that is read late tells nothing of the time since.
    const now = environment.monotonic();
    const stream = `worker:${worker}`;
    const [record] = await store.read(tenant, [stream]);
    const last: Requirement = { stream, version: record?.version ?? 0 };
    const state = record?.state as unknown as WorkerState | undefined;
    if (state !== undefined && state.host === this.#host && !isRunning(state.process)) return last;
    const beat = state?.beat ?? 0;
    const watched = this.#watched.get(claim);
    if (watched?.beat !== beat) {
      if (this.#watched.size >= WATCHED_MAX) this.#watched.clear();
      this.#watched.set(claim, { beat, seenAt: environment.monotonic() });
      return undefined;
    }
    return now - watched.seenAt > settings.leaseMs ? last : undefined;
  }
}

/**
 * Signal 0 asks for a process's existence and sends nothing. One that has ended and that nobody has asked about yet
 * still has its number (in a container without an init, for as long as its parent likes).
 */
export function isRunning(id: number): boolean {
  try {
    process.kill(id, 0);
  } catch (cause) {
    // No permission means that somebody is there.
    if ((cause as NodeJS.ErrnoException).code === 'ESRCH') return false;
  }
  return !hasEnded(id);
}

/** Where the operating system tells: the state stands behind the name, which may hold anything (`proc_pid_stat(5)`). */
function hasEnded(id: number): boolean {
  try {
    const stat = readFileSync(`/proc/${id}/stat`, 'utf8');
    return /^\) [ZX]/.test(stat.slice(stat.lastIndexOf(')')));
  } catch {
    return false;
  }
}

/** As this machine names this process. */
export function ownProcess(): number {
  return process.pid;
}

/** Two processes with equal identities see each other's process ids; where that cannot be told, none are equal. */
export function hostIdentity(): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${hostname()}/${boot}/${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    return process.platform === 'linux'
      ? `${hostname()}/${process.pid}`
      : `${hostname()}/${process.platform}`;
  }
}
