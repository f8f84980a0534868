// The Inspector's command line as the client of a gateway: it lists the tools, reads, writes, and reads of the write.
//
// The Inspector is no dependency: 120 packages, 111 MB. It is installed into a folder that is removed again, or taken
// from the folder that is given as the argument.

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installInto } from './on-demand.mjs';
import { ROOT } from './processes.mjs';
import { setUpOrExit } from './setup.mjs';
import { figuresLine } from './test.mjs';

const INSPECTOR = '@modelcontextprotocol/inspector';
const VERSION = '2.12.0';
const CALL_MS = 30_000;

await setUpOrExit();
const folder = mkdtempSync(join(tmpdir(), 'counterfoil-inspector-'));
const figures = { passed: 0, failed: 0 };
try {
  const installed = process.argv[2] ?? install(folder);
  check(join(installed, 'node_modules', INSPECTOR, 'clients/launcher/build/index.js'));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.stdout.write(`${figuresLine(figures)}\n`);
process.exitCode = figures.failed === 0 ? 0 : 1;

function install(into) {
  installInto(into, [`${INSPECTOR}@${VERSION}`]);
  return into;
}

function check(launcher) {
  const files = join(folder, 'files');
  mkdirSync(files);
  writeFileSync(join(files, 'there.txt'), 'already there');
  const written = join(files, 'written.txt');
  const gateway = [
    process.execPath,
    join(ROOT, 'dist/cli/counterfoil.js'),
    'mcp',
    '--no-resident',
    '--data',
    join(folder, 'data'),
    '--',
    process.execPath,
    join(ROOT, 'node_modules/@modelcontextprotocol/server-filesystem/dist/index.js'),
    files,
  ];
  const inspect = (...args) => {
    const run = spawnSync(process.execPath, [launcher, '--cli', ...gateway, ...args], {
      encoding: 'utf8',
      timeout: CALL_MS,
      // Its catalog of servers, and whatever else it keeps, goes with the folder.
      env: { ...process.env, HOME: folder },
    });
    return { code: run.status, said: run.stderr, result: parsed(run.stdout) };
  };
  const call = (tool, args, ...more) =>
    inspect(
      '--method',
      'tools/call',
      '--tool-name',
      tool,
      ...Object.entries(args).flatMap(([name, value]) => ['--tool-arg', `${name}=${value}`]),
      ...more,
    );

  const listed = inspect('--method', 'tools/list');
  const names = listed.result?.tools?.map(({ name }) => name) ?? [];
  expect(
    'lists the tools of the server, and the helper tool last',
    listed,
    () => names.includes('write_file') && names.at(-1) === 'counterfoil_operation_status',
  );
  const read = call('read_text_file', { path: join(files, 'there.txt') });
  expect('reads', read, ({ result }) => result?.content?.[0]?.text === 'already there');
  const write = { path: written, content: 'by the Inspector' };
  const first = call('write_file', write, '--tool-metadata', 'counterfoil/run=inspector');
  expect(
    'writes, and is given the answer of the server',
    first,
    ({ code, result }) =>
      code === 0 && result?.structuredContent?.content === `Successfully wrote to ${written}`,
  );
  expect('the file is there', first, () => readFileSync(written, 'utf8') === 'by the Inspector');
  const second = call('write_file', write, '--tool-metadata', 'counterfoil/run=inspector');
  expect(
    'the same write of another session is told as done before',
    second,
    ({ code, result }) => code === 0 && result?.content?.[0]?.text.startsWith('ALREADY_EXISTS — '),
  );
  const operation = second.result?._meta?.['counterfoil/operation'];
  expect(
    'under the run that its _meta names, and read back',
    second,
    () => operation?.run === 'inspector' && operation.effect === 'verified',
  );
  const status = call('counterfoil_operation_status', { operation: operation?.operation });
  expect('the helper tool tells of it', status, ({ result }) =>
    result?.content?.[0]?.text.startsWith(`VERIFIED (${operation?.operation})`),
  );
}

function expect(what, seen, isRight) {
  let right = false;
  try {
    right = isRight(seen) === true;
  } catch (error) {
    process.stdout.write(`${error instanceof Error ? error.message : 'thrown'}\n`);
  }
  figures[right ? 'passed' : 'failed'] += 1;
  process.stdout.write(`${right ? '✓' : '✗'} ${what}\n`);
  if (!right) process.stdout.write(`${JSON.stringify(seen, null, 2)}\n`);
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
