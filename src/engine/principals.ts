// Who may act, as rows in the store with the instant at which that was known: asked again before each attempt, so that
// access that was removed in between holds what was approved (D8).

import { checkStanding, type PrincipalKind, type PrincipalRow } from '../access/standing.ts';
import { isTokenPrincipal } from '../access/tokens.ts';
import type { AccessLost } from '../core/operation.ts';
import type { Policy } from '../core/policy.ts';
import { type Json, StoreFault } from '../store/port.ts';
import type { EngineContext } from './context.ts';
import { describe } from './reports.ts';
import type { Tokens } from './tokens.ts';

const PRINCIPALS_MAX = 10_000;
const GOOD_FOR_MS = 200;

export interface NewPrincipal {
  readonly name: string;
  readonly kind: PrincipalKind;
  readonly expiresAt?: number;
}

export class Principals {
  readonly #context: EngineContext;
  readonly #tokens: Tokens;
  readonly #asking = new Map<string, Promise<void>>();
  #known: { readonly commits: number; readonly rows: ReadonlyMap<string, PrincipalRow> } | undefined;
  /** The monotonic instant until which what is known is taken for what is, where nobody has decided anything. */
  #goodUntil = Number.NEGATIVE_INFINITY;

  constructor(context: EngineContext, tokens: Tokens) {
    this.#context = context;
    this.#tokens = tokens;
  }

  /** By name; whoever is in no row acts as the door lets them. @throws {StoreFault} */
  async all(): Promise<ReadonlyMap<string, PrincipalRow>> {
    const { store, tenant } = this.#context;
    const commits = await store.foreignCommits();
    if (this.#known?.commits === commits) return this.#known.rows;
    const records = await store.streams({ tenant, kind: 'principal', limit: PRINCIPALS_MAX });
    const rows = new Map(
      records.map(({ state }) => {
        const row = state as unknown as PrincipalRow;
        return [row.name, row] as const;
      }),
    );
    this.#known = { commits, rows };
    return rows;
  }

  /** By what is recorded here alone; nobody is asked. @throws {StoreFault} */
  async lost(principal: string): Promise<AccessLost | undefined> {
    const at = this.#context.environment.now();
    const row = (await this.all()).get(principal);
    // Asked for each write: what costs something is read only where it says something.
    const tokens = isTokenPrincipal(principal) ? await this.#tokens.all() : [];
    return checkStanding(principal, { row, tokens }, at);
  }

  /** As `lost`, with the answer of who is to be asked, where the policy names one. @throws {StoreFault} */
  async lostNow(principal: string, access: Policy['access']): Promise<AccessLost | undefined> {
    const { environment } = this.#context;
    const lost = await this.lost(principal);
    if (lost !== undefined || access === undefined) return lost;
    const isFresh = async (): Promise<boolean> => {
      const row = (await this.all()).get(principal);
      return row?.confirmedAt !== undefined && environment.now() - row.confirmedAt <= access.maxAgeMs;
    };
    if (await isFresh()) return undefined;
    await this.#ask(principal, access.command);
    return (await this.lost(principal)) ?? ((await isFresh()) ? undefined : 'not_confirmed');
  }

  /** Whoever waits for the same answer waits for one question. */
  async #ask(principal: string, command: readonly string[]): Promise<void> {
    const asking =
      this.#asking.get(principal) ??
      this.#askOnce(principal, command).finally(() => this.#asking.delete(principal));
    this.#asking.set(principal, asking);
    await asking;
  }

  async #askOnce(principal: string, command: readonly string[]): Promise<void> {
    const { askAccess, environment, report } = this.#context;
    // Counted from before it was asked: the answer is at least as old as that.
    const at = environment.now();
    const answer = await askAccess(command, principal);
    if (!answer.answered) {
      report(`Whether ${principal} still has access could not be asked: ${answer.detail}`);
      return;
    }
    await this.#change(principal, (row) => {
      const { confirmedAt: _before, ...known } = row ?? { name: principal, kind: 'unknown' };
      // What it said before counts no more, also when a person restores the access.
      const said = answer.hasAccess
        ? { confirmedAt: at }
        : { removedAt: row?.removedAt ?? at, removedBy: row?.removedBy ?? 'source' };
      return {
        row: { ...known, ...said },
        event: { type: answer.hasAccess ? 'confirmed' : 'removed', by: 'source', at },
      };
    });
  }

  /** False where the name is given already. @throws {StoreFault} */
  async add({ expiresAt, kind, name }: NewPrincipal, by: string): Promise<boolean> {
    return this.#change(name, (row, at) =>
      row === undefined || row.kind === 'unknown'
        ? {
            row: { ...row, name, kind, ...(expiresAt === undefined ? {} : { expiresAt }) },
            event: { type: 'added', by, at, kind, ...(expiresAt === undefined ? {} : { expiresAt }) },
          }
        : undefined,
    );
  }

  /** What it asked for or approved, and what has not left, is held from now on. @throws {StoreFault} */
  async remove(name: string, by: string): Promise<boolean> {
    return this.#change(name, (row, at) =>
      row?.removedAt === undefined
        ? {
            row: { ...(row ?? { name, kind: 'unknown' }), removedAt: at, removedBy: by },
            event: { type: 'removed', by, at },
          }
        : undefined,
    );
  }

  /** By a person whose passphrase was asked: it loosens something. @throws {StoreFault} */
  async restore(name: string, by: string): Promise<boolean> {
    return this.#change(name, (row, at) => {
      if (row?.removedAt === undefined) return undefined;
      const { removedAt: _at, removedBy: _by, ...rest } = row;
      return { row: rest, event: { type: 'restored', by, at } };
    });
  }

  async #change(
    name: string,
    next: (
      row: PrincipalRow | undefined,
      at: number,
    ) => { readonly row: PrincipalRow; readonly event: Json } | undefined,
  ): Promise<boolean> {
    const { environment, store, tenant } = this.#context;
    const stream = `principal:${name}`;
    for (;;) {
      const [record] = await store.read(tenant, [stream]);
      const at = environment.now();
      const changed = next(record?.state as unknown as PrincipalRow | undefined, at);
      if (changed === undefined) return false;
      const write = {
        stream,
        expectedVersion: record?.version ?? 0,
        events: [changed.event],
        state: changed.row as unknown as Json,
      };
      const [result] = await store.commit([{ tenant, at, writes: [write] }]);
      this.#known = undefined;
      if (result?.outcome === 'stored') return true;
    }
  }

  /**
   * For what may be sent in the commit of its proposal: what cannot be read now is asked about before it is sent. Where
   * nothing is known of anybody it is looked at a few times a second, because to look costs as much as to judge.
   */
  mayBeLost(principal: string): boolean | Promise<boolean> {
    const isNothingKnown = this.#known?.rows.size === 0 && !isTokenPrincipal(principal);
    if (isNothingKnown && this.#context.environment.monotonic() < this.#goodUntil) return false;
    return this.#mayBeLostNow(principal);
  }

  async #mayBeLostNow(principal: string): Promise<boolean> {
    const { environment } = this.#context;
    try {
      const isLost = (await this.lost(principal)) !== undefined;
      this.#goodUntil = environment.monotonic() + GOOD_FOR_MS;
      return isLost;
    } catch (cause) {
      if (!(cause instanceof StoreFault)) throw cause;
      this.#context.report(`Whether ${principal} still has access could not be read: ${describe(cause)}`);
      return true;
    }
  }
}
