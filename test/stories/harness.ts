// One story of the promises: a client of the MCP SDK, the gateway as it is installed, and the demo's destination,
// in a fresh folder. What the destination holds is counted in its own log, when every process has ended.

import { appendFileSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TestContext } from 'vitest';
import {
  type DestinationRecord,
  makeWorld,
  type Ran,
  type Shown,
  type World,
  type WorldOptions,
} from '../../demo/world.mjs';

export const RUN = { run: 'cutover billing' };
export const CHANGE = {
  service: 'billing',
  starts: '2026-12-05T22:00Z',
  description: 'Move the billing database.',
};
export const OLD_MACHINE = { vm: 'vm-17', name: 'billing-db-old' };
export const NEW_MACHINE = { vm: 'vm-18', name: 'billing-db-new' };
/** With `TEST_STORE=postgres` the ledgers of the stories are there. */
const database =
  process.env['TEST_STORE'] === 'postgres'
    ? await (await import('../store/fixtures/postgres.ts')).testDatabase()
    : undefined;
const elsewhere = database === undefined ? {} : { store: database.url };

/** What the destination answers to the first change request, when nothing goes wrong. */
export const OWN_ANSWER = '{"id":"CHG-1042",';
/** A caller that does not wait for long, and asks again. */
export const IMPATIENT = { patienceMs: 1_000, tries: 8 };

/** Stories start real processes; on a busy machine they take their time. */
export const STORY = { timeout: 60_000 };

/**
 * A world in a folder of its own; both are gone when the test has ended.
 * @param context of the test, because stories run side by side
 */
export function setup(
  context: Pick<TestContext, 'onTestFinished'>,
  options: Omit<WorldOptions, 'folder'> = {},
): World {
  const folder = mkdtempSync(join(tmpdir(), 'counterfoil-story-'));
  const world = makeWorld({ folder, ...elsewhere, ...options });
  context.onTestFinished(async () => {
    await world.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  });
  return world;
}

/** Ends every process of the world, and gives what the destination holds then. */
export async function heldBy(world: World, tool?: string): Promise<readonly DestinationRecord[]> {
  await world.close();
  return world.records(tool);
}

/** @throws when there is no such operation: a story that needs one has nothing to say then */
export async function shown(world: World, id?: string): Promise<Shown> {
  const found = await world.show(id);
  if (found === undefined) throw new Error(`No operation ${id ?? ''} is recorded.`);
  return found;
}

export function historyOf({ history }: Shown): readonly string[] {
  return history.map(({ event }) => event.type);
}

/** The ids of the operations that \`counterfoil queue --json\` lists. */
export function queuedIn({ json }: Ran): readonly string[] {
  return (json as { readonly operations: readonly Shown[] }).operations.map(({ operation }) => operation.id);
}

const DEMO = fileURLToPath(new URL('../../demo/', import.meta.url));
const OWNERS_FILES = ['gateway.yaml', 'cutover.contract.yaml', 'cutover.binding.yaml'] as const;

/**
 * The configuration of the demo with other words in its files, each of which has to be there.
 * @returns the path of its `gateway.yaml`
 */
export function changedConfig(
  context: Pick<TestContext, 'onTestFinished'>,
  changes: {
    readonly [file in (typeof OWNERS_FILES)[number]]?: readonly (readonly [was: string, is: string])[];
  },
): string {
  const folder = mkdtempSync(join(tmpdir(), 'counterfoil-config-'));
  context.onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));
  for (const file of OWNERS_FILES) {
    cpSync(join(DEMO, file), join(folder, file));
    for (const [was, is] of changes[file] ?? []) {
      const text = readFileSync(join(folder, file), 'utf8');
      if (!text.includes(was)) throw new Error(`${file} does not say ${was}`);
      writeFileSync(join(folder, file), text.replace(was, is));
    }
  }
  return join(folder, 'gateway.yaml');
}

/** Somebody else writes at the destination: its log is its database. */
export function somebodyWrites(world: World, tool: string, record: DestinationRecord): void {
  appendFileSync(world.log, `${JSON.stringify({ event: 'record', at: '', pid: 0, tool, record })}\n`);
}
