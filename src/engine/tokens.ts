// The tokens of a ledger, as rows in its store: revoked in one process, refused in all of them with the next request.

import type { TokenRow } from '../access/tokens.ts';
import { type Json, StoreFault } from '../store/port.ts';
import type { EngineContext } from './context.ts';

const TOKENS_MAX = 1_000;

export type TokenCreation =
  | { readonly created: true }
  | { readonly created: false; readonly why: 'name_taken' };

export class Tokens {
  readonly #context: EngineContext;
  #known: { readonly commits: number; readonly rows: readonly TokenRow[] } | undefined;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /**
   * Every token that was ever made, ended ones too. Read again when another process has committed; while the store
   * is down what was read last counts, and nothing where it has never been read.
   * @throws {StoreFault}
   */
  async all(): Promise<readonly TokenRow[]> {
    const { store, tenant } = this.#context;
    try {
      const commits = await store.foreignCommits();
      if (this.#known?.commits === commits) return this.#known.rows;
      const records = await store.streams({ tenant, kind: 'token', limit: TOKENS_MAX });
      const rows = records.map(({ state }) => state as unknown as TokenRow);
      this.#known = { commits, rows };
      return rows;
    } catch (cause) {
      if (!(cause instanceof StoreFault) || this.#known === undefined) throw cause;
      return this.#known.rows;
    }
  }

  /** A name is given once: operations of an ended token are still called by it. @throws {StoreFault} */
  async create(row: TokenRow): Promise<TokenCreation> {
    const stored = await this.#write(row, 0, { type: 'created', by: row.createdBy, at: row.createdAt });
    return stored ? { created: true } : { created: false, why: 'name_taken' };
  }

  /** False when there is no such token, or it was revoked before. @throws {StoreFault} */
  async revoke(name: string, by: string): Promise<boolean> {
    const { environment, store, tenant } = this.#context;
    for (;;) {
      const [record] = await store.read(tenant, [streamOf(name)]);
      const row = record?.state as unknown as TokenRow | undefined;
      if (record === undefined || row === undefined || row.revokedAt !== undefined) return false;
      const at = environment.now();
      if (await this.#write({ ...row, revokedAt: at }, record.version, { type: 'revoked', by, at }))
        return true;
    }
  }

  async #write(row: TokenRow, expectedVersion: number, event: Json): Promise<boolean> {
    const { environment, store, tenant } = this.#context;
    const [result] = await store.commit([
      {
        tenant,
        at: environment.now(),
        writes: [
          { stream: streamOf(row.name), expectedVersion, events: [event], state: row as unknown as Json },
        ],
      },
    ]);
    this.#known = undefined;
    return result?.outcome === 'stored';
  }
}

function streamOf(name: string): string {
  return `token:${name}`;
}
