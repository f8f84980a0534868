// Runs the official suite, a program of its own, and reads what it has written down.

import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';

export const GENERATIONS = ['2025-11-25', '2026-07-28'];

/** Longer than the suite takes for all scenarios of a generation when every one of them hangs for a while. */
const RUN_MS = 300_000;
const SAID_MAX = 4_000;

/**
 * @param {{ node: string, program: string }} suite the Node that it runs on, and its file
 * @param {string} generation
 * @returns {{ server: readonly string[], client: readonly string[], unscored: { server: readonly string[], client: readonly string[] } }}
 *   the scenarios that a generation requires of either side, and those that are run beside them
 */
export function requirementsOf({ program }, generation) {
  const file = join(dirname(program), '..', 'requirements', `${generation}.yaml`);
  const { server, client, not_scored: unscored = [] } = parse(readFileSync(file, 'utf8'));
  const of = (leg) => unscored.filter((entry) => entry.leg === leg).map(({ scenario }) => scenario);
  return { server, client, unscored: { server: of('server'), client: of('client') } };
}

/**
 * All server scenarios of a generation against one address.
 * @returns {Promise<Map<string, readonly object[]>>} the checks by scenario; one that was not run to its end is missing
 */
export async function runServerScenarios(suite, { generation, url, folder }) {
  const { server, unscored } = requirementsOf(suite, generation);
  await run(suite, ['server', '--url', url, '--requirements', generation, '--output-dir', folder]);
  return checksIn(folder, [...server, ...unscored.server], 'server-');
}

/**
 * Client scenarios of a generation, one by one, with one command, to which the suite appends its server's address.
 * @param {{ generation: string, scenarios: readonly string[], command: string, folder: string }} options
 * @returns {Promise<Map<string, readonly object[]>>} as of the server scenarios
 */
export async function runClientScenarios(suite, { generation, scenarios, command, folder }) {
  const common = ['client', '--command', command, '--spec-version', generation, '--output-dir', folder];
  const found = new Map();
  for (const scenario of scenarios) {
    const code = await run(suite, [...common, '--scenario', scenario]);
    const checks = checksIn(folder, [scenario], '').get(scenario);
    if (checks !== undefined) found.set(scenario, code === 0 ? checks : withClientsEnd(checks));
  }
  return found;
}

/** The suite is not content although every check is: then the client itself ended with an error, or not in time. */
function withClientsEnd(checks) {
  if (checks.some(({ status }) => status === 'FAILURE' || status === 'WARNING')) return checks;
  return [...checks, { id: '(client)', status: 'FAILURE', errorMessage: 'The client did not end well.' }];
}

/** The suite's exit code says what its results say; only a run that has not come to its end is a fault. */
function run({ node, program }, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(node, [program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    const hear = (chunk) => {
      said = (said + chunk).slice(-SAID_MAX);
    };
    child.stdout.setEncoding('utf8').on('data', hear);
    child.stderr.setEncoding('utf8').on('data', hear);
    const timer = setTimeout(() => child.kill('SIGKILL'), RUN_MS);
    child.once('error', reject);
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      if (code === 0 || code === 1) resolve(code);
      else reject(new Error(`The suite ended with ${code ?? signal} before its end. It said last: ${said}`));
    });
  });
}

function checksIn(folder, scenarios, prefix) {
  const names = readdirSync(folder, { recursive: true });
  const found = new Map();
  for (const scenario of scenarios) {
    // The name of a folder is that of its scenario and the instant at which it began.
    const begin = `${prefix}${scenario}-`;
    const file = names.find((name) => {
      const [rest, end] = [name.slice(begin.length), '/checks.json'];
      return name.startsWith(begin) && /^\d{4}-\d\d-\d\dT/.test(rest) && name.endsWith(end);
    });
    if (file !== undefined) found.set(scenario, JSON.parse(readFileSync(join(folder, file), 'utf8')));
  }
  return found;
}
