// What an owner does with a database beside having a ledger in it: make the tables, print what would make them, and try
// whether it does what the store asks of one.

import { randomBytes } from 'node:crypto';
import type { Store } from '../port.ts';
import { readAddress } from './address.ts';
import { Line } from './line.ts';
import { openPostgresStore, type PostgresStoreOptions } from './postgres-store.ts';
import { newLedger, TABLES, tablesOf } from './schema.ts';

/** What somebody with the right to do so runs once. */
export function tablesText(url: string): string {
  const { schema } = readAddress(url);
  return [`CREATE SCHEMA IF NOT EXISTS ${schema}`, ...tablesOf(schema, newLedger())]
    .map((statement) => `${statement};\n`)
    .join('');
}

export interface TrialPlace {
  /** One more handle on one place. */
  open(): Promise<Store>;
  /** Leaves the tables, and nothing in them. */
  empty(): Promise<void>;
  /** Removes everything that was made. */
  remove(): Promise<void>;
}

const DEADLINE_MS = 30_000;

/** A schema of its own in a database, for as long as something is tried there. */
export async function trialPlace({
  url,
  waived = [],
}: Pick<PostgresStoreOptions, 'url' | 'waived'>): Promise<TrialPlace> {
  const plainName = `counterfoil_check_${randomBytes(4).toString('hex')}`;
  const address = new URL(url);
  address.searchParams.set('schema', plainName);
  const open = () => openPostgresStore({ url: address.href, waived });
  // Whoever cannot open it is told so before anything is tried.
  await (await open()).close();
  const { config, schema } = readAddress(address.href);
  const line = await Line.open({ config, deadlineMs: DEADLINE_MS });
  const each = async (verb: string) => {
    for (const table of TABLES) await line.run({ text: `${verb} ${schema}.${table}` });
  };
  return {
    open,
    empty: () => each('DELETE FROM'),
    async remove() {
      await each('DROP TABLE');
      await line.run({ text: `DROP TABLE ${schema}.meta` });
      await line.run({ text: `DROP SCHEMA ${schema}` });
      await line.end();
    },
  };
}
