// `counterfoil store`: where the ledger is, moved to PostgreSQL before anything is recorded, looked at, and tried.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import {
  inspectStore,
  LEDGER_FILE,
  makeTables,
  type NamedStore,
  readDurability,
  readStoreFile,
  shownAddress,
  tablesText,
  trialPlace,
  useStore,
} from '../compose.ts';
import { StoreFault } from '../store/port.ts';
import { exerciseStore } from '../testing/exercise-store.ts';
import { dataDirectory } from './data-place.ts';
import { printable } from './lines.ts';
import { CommandFault, EXIT, print, printJson } from './output.ts';
import { toType } from './starter.ts';

interface WaivingOptions {
  readonly waive?: readonly string[];
}

interface DataOptions {
  readonly data?: string;
  readonly json?: boolean;
}

const WAIVABLE = ['fsync', 'full_page_writes', 'synchronous_commit'] as const;

function namedStore(url: string, { waive = [] }: WaivingOptions): NamedStore {
  const waived = waive.map((name) => {
    const known = WAIVABLE.find((each) => each === name);
    if (known !== undefined) return known;
    throw new CommandFault(
      EXIT.usage,
      `--waive ${printable(name)}: only ${WAIVABLE.join(', ')} can be waived. Nothing was changed.`,
    );
  });
  return { url, waived };
}

export async function storeUse(url: string, options: DataOptions & WaivingOptions): Promise<number> {
  const data = dataDirectory(options.data);
  if (existsSync(join(data, LEDGER_FILE))) {
    throw new CommandFault(
      EXIT.conflict,
      `There is a ledger in ${printable(data)}, and what it has recorded would not be found any more: name another directory with --data. Nothing was changed.`,
    );
  }
  const named = namedStore(url, options);
  const { version, settings } = await orFault(useStore(data, named));
  const place = await shownAddress(url);
  if (options.json === true) printJson({ data, place, version, settings });
  else {
    print(
      `The ledger of ${printable(data)} is at ${printable(place)} now: PostgreSQL ${printable(version)}.`,
    );
    print(
      'Other machines work with it after the same command, with a copy of the file intent.key of this directory in theirs.',
    );
  }
  return EXIT.done;
}

export async function storeStatus(options: DataOptions): Promise<number> {
  const data = dataDirectory(options.data);
  const named = await orFault(async () => readStoreFile(data));
  const place = named === undefined ? join(data, LEDGER_FILE) : await orFault(shownAddress(named.url));
  const { engine, version, settings, isLedger } = await orFault(readDurability(data));
  const schema = named === undefined ? undefined : (await orFault(inspectStore(named))).schema;
  if (options.json === true) printJson({ data, place, engine, version, settings, isLedger, schema });
  else {
    print(`${printable(place)}${isLedger ? '' : ': there is no ledger yet'}`);
    print(`${engine === 'postgres' ? 'PostgreSQL' : 'SQLite'} ${printable(version)}`);
    for (const [name, value] of Object.entries(settings)) print(`  ${printable(name)}: ${printable(value)}`);
    if (schema?.state === 'present') print(`  schema: ${schema.version}`);
  }
  return EXIT.done;
}

export async function storeMigrate(
  url: string | undefined,
  options: DataOptions & WaivingOptions & { readonly print?: boolean },
): Promise<number> {
  const data = dataDirectory(options.data);
  const named = url === undefined ? await orFault(async () => readStoreFile(data)) : namedStore(url, options);
  if (named === undefined) {
    throw new CommandFault(
      EXIT.usage,
      `No address was given, and ${printable(data)} names no store: ${toType('store migrate postgres://USER@HOST:PORT/DATABASE')}.`,
    );
  }
  if (options.print === true) {
    process.stdout.write(await orFault(tablesText(named.url)));
    return EXIT.done;
  }
  const before = (await orFault(inspectStore(named))).schema;
  await orFault(makeTables(named));
  const { schema } = await orFault(inspectStore(named));
  const version = schema.state === 'present' ? schema.version : 0;
  const place = printable(await shownAddress(named.url));
  const isMade = before.state === 'absent';
  print(`The tables at ${place} are ${isMade ? 'made' : 'there'}, schema ${version}.`);
  return EXIT.done;
}

/** What the store asks of a database, case by case. It says nothing of machines that fail. */
export async function storeCheck(
  url: string,
  options: WaivingOptions & { readonly json?: boolean },
): Promise<number> {
  const place = await orFault(trialPlace(namedStore(url, options)));
  const cases = exerciseStore({
    name: 'check',
    open: () => place.open(),
    isDurable: true,
    remove: () => place.empty(),
  });
  const results: { name: string; problem?: string }[] = [];
  try {
    for (const { name, run } of cases) {
      const problem = await run().then(
        () => undefined,
        (cause: unknown) => firstLine(cause),
      );
      results.push({ name, ...(problem === undefined ? {} : { problem }) });
      if (options.json !== true)
        print(problem === undefined ? `holds   ${name}` : `BROKEN  ${name}: ${problem}`);
    }
  } finally {
    await place.remove();
  }
  const broken = results.filter(({ problem }) => problem !== undefined).length;
  if (options.json === true) printJson({ cases: results, broken });
  else {
    print(
      `${results.length - broken} of ${results.length} cases hold at ${printable(await shownAddress(url))}.`,
    );
    print('Whether it keeps what it has confirmed when a machine fails cannot be seen from here.');
  }
  return broken === 0 ? EXIT.done : EXIT.internal;
}

function firstLine(cause: unknown): string {
  return printable((cause instanceof Error ? cause.message : String(cause)).split('\n')[0] ?? '');
}

async function orFault<Result>(work: Promise<Result> | (() => Promise<Result>)): Promise<Result> {
  try {
    return await (typeof work === 'function' ? work() : work);
  } catch (cause) {
    if (cause instanceof StoreFault) throw new CommandFault(EXIT.internal, printable(cause.message));
    throw cause;
  }
}
