// The build under test: `dist` as it is, or a copy of it in which bugs were planted.

import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const DIST = fileURLToPath(new URL('../dist/', import.meta.url));
/** All that the engine needs; none of it needs a package. */
const ROOMS = ['access', 'core', 'engine', 'store', 'destination'];

/** Whether each fits exactly once, as a sentence for each that does not. */
export function misfits(patches) {
  return patches.flatMap(({ file, from }) => {
    const found = readFileSync(join(DIST, file), 'utf8').split(from).length - 1;
    return found === 1 ? [] : [`A bug is planted in one place: ${found} of ${file} read "${from}".`];
  });
}

/**
 * @param {readonly { file: string, from: string, to: string }[]} patches each must fit exactly once: a patch that fits
 *   nowhere would plant nothing, and be found by nobody
 */
export async function loadBuild(patches = []) {
  if (patches.length === 0) return importFrom(DIST);
  const [misfit] = misfits(patches);
  if (misfit !== undefined) throw new Error(misfit);
  const folder = mkdtempSync(join(tmpdir(), 'counterfoil-planted-'));
  try {
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}\n');
    for (const room of ROOMS) cpSync(join(DIST, room), join(folder, room), { recursive: true });
    for (const { file, from, to } of patches) {
      const name = join(folder, file);
      const text = readFileSync(name, 'utf8');
      // A function, so that nothing in the text is taken for a pattern.
      writeFileSync(
        name,
        text.replace(from, () => to),
      );
    }
    return await importFrom(`${folder}/`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function importFrom(folder) {
  const load = (file) => import(pathToFileURL(join(folder, file)).href);
  const [ledger, waiters, stops, settings, reopening, checks, port, operation] = await Promise.all(
    [
      'engine/ledger.js',
      'engine/waiters.js',
      'engine/stops-in-force.js',
      'engine/settings.js',
      'store/reopening-store.js',
      'store/assert-change.js',
      'store/port.js',
      'core/operation.js',
    ].map(load),
  );
  return {
    Ledger: ledger.Ledger,
    Waiters: waiters.Waiters,
    StopsInForce: stops.StopsInForce,
    noAnswersOut: waiters.noAnswersOut,
    settings: settings.DEFAULT_SETTINGS,
    ReopeningStore: reopening.ReopeningStore,
    StoreFault: port.StoreFault,
    storePort: { ...checks, StoreFault: port.StoreFault },
    isStatementCurrent: operation.isStatementCurrent,
  };
}
