// Brings a checkout to where its commands can run: packages installed, sources built, a store that loads.
//
// Node's own modules only: this runs on a fresh clone, before anything is installed. When nothing has changed
// since the last time it takes some hundredths of a second.

import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from './build.mjs';
import { isProgram, npm, ROOT } from './processes.mjs';

const NODE_MIN = [20, 19];
const INSTALLED_STAMP = 'node_modules/.counterfoil-installed';
const BUILT_STAMP = 'dist/.built';

/** What could not be set up, in one sentence that a person can act on. */
export class SetUpError extends Error {}

/**
 * Does what is missing, and says in one line what it did.
 * @param {{ root?: string, say?: (line: string) => void }} [options] `say` gets the one line; standard error
 *   by default, so that a command's own output stays its own
 * @throws {SetUpError}
 */
export async function setUp({ root = ROOT, say = (line) => process.stderr.write(`${line}\n`) } = {}) {
  const since = performance.now();
  checkNode();
  const done = [];
  if (installWhenNeeded(root)) done.push('installed the packages');
  if (buildWhenNeeded(root)) done.push('built dist');
  const store = await loadStore(root);
  const seconds = ((performance.now() - since) / 1000).toFixed(1);
  const what = done.length === 0 ? 'nothing to do' : done.join(', ');
  say(
    `set-up: ${what} (${seconds} s); store: ${store.name}, SQLite ${store.version}; Node ${process.versions.node}`,
  );
}

/**
 * Sets up, and ends the process with the one sentence when that cannot be done.
 * @param {{ figures?: string }} [options] `figures`: the last line of a command that always ends with one
 */
export async function setUpOrExit({ figures } = {}) {
  try {
    await setUp();
  } catch (error) {
    if (!(error instanceof SetUpError)) throw error;
    process.stderr.write(`set-up failed: ${error.message}\n`);
    if (figures !== undefined) process.stdout.write(`${figures}\n`);
    process.exit(1);
  }
}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > NODE_MIN[0] || (major === NODE_MIN[0] && minor >= NODE_MIN[1])) return;
  throw new SetUpError(
    `Counterfoil needs Node ${NODE_MIN.join('.')} or later; this is ${process.versions.node}.`,
  );
}

// ── Packages ───────────────────────────────────────────────────────────────────────────────────────────────

/** Whether it had to. */
export function installWhenNeeded(root) {
  const stamp = `${digest(readFileSync(join(root, 'package-lock.json')))} ${process.platform}-${process.arch}\n`;
  const stampFile = join(root, INSTALLED_STAMP);
  if (readOrUndefined(stampFile) === stamp) return false;
  const agrees = isInstalled(root);
  if (!agrees) npmCi(root);
  writeFileSync(stampFile, stamp);
  return !agrees;
}

/**
 * Whether what npm noted as installed is what the lockfile asks for: true after an `npm install` by hand, which
 * leaves no stamp of ours. Packages that are not there may only be optional ones, made for other platforms.
 */
function isInstalled(root) {
  const noted = readOrUndefined(join(root, 'node_modules/.package-lock.json'));
  if (noted === undefined) return false;
  const { packages: installed } = JSON.parse(noted);
  const { packages: wanted } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  for (const [path, entry] of Object.entries(wanted)) {
    if (path === '') continue;
    const found = installed[path];
    if (found === undefined ? entry.optional !== true : found.integrity !== entry.integrity) return false;
    if (found !== undefined && !existsSync(join(root, path, 'package.json'))) return false;
  }
  return true;
}

function npmCi(root) {
  // Quiet unless it fails: npm warns of engines that a package only recommends, and of scripts that are not run.
  const { status, stdout, stderr, error } = npm(['ci', '--no-audit', '--no-fund', '--loglevel=warn'], root);
  if (status === 0) return;
  process.stderr.write(`${stdout ?? ''}${stderr ?? ''}`);
  throw new SetUpError(
    `"npm ci" ${error === undefined ? `ended with ${status}` : `could not be started (${error.message})`}; ` +
      'its output is above. Check that the npm registry can be reached, then run the same command again.',
  );
}

// ── Build ──────────────────────────────────────────────────────────────────────────────────────────────────

/** Whether it had to. */
export function buildWhenNeeded(root) {
  const stamp = `${sourcesDigest(root)}\n`;
  if (readOrUndefined(join(root, BUILT_STAMP)) === stamp) return false;
  const result = build(root);
  if (!result.ok) {
    process.stderr.write(result.output);
    throw new SetUpError('The sources do not compile; the compiler says why above.');
  }
  writeFileSync(join(root, BUILT_STAMP), stamp);
  return true;
}

/** Over names and contents, so that a file that was removed or renamed counts as well. */
function sourcesDigest(root) {
  const files = ['package.json', 'tsconfig.json', 'tsconfig.build.json', 'scripts/build.mjs'].map((name) =>
    join(root, name),
  );
  const sources = readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true });
  for (const entry of sources) if (entry.isFile()) files.push(join(entry.parentPath, entry.name));
  const hash = createHash('sha256');
  for (const file of files.toSorted((a, b) => (a < b ? -1 : 1))) {
    const bytes = readFileSync(file);
    hash.update(`${relative(root, file)} ${bytes.length}\n`).update(bytes);
  }
  return hash.digest('hex');
}

// ── Store ──────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Opens an empty store in memory with the engine that the product would choose.
 * @returns {Promise<{ name: string, version: string }>}
 */
export async function loadStore(root) {
  try {
    const { loadSqliteDriver } = await import(pathToFileURL(join(root, 'dist/store/sqlite/driver.js')).href);
    const driver = await loadSqliteDriver();
    driver.open(':memory:').close();
    return driver;
  } catch (error) {
    throw new SetUpError(`No store loads, so nothing could be recorded: ${error.message.split('\n')[0]}`);
  }
}

function readOrUndefined(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}

function digest(bytes) {
  return createHash('sha256').update(bytes).digest('hex');
}

if (isProgram(import.meta.url)) await setUpOrExit();
