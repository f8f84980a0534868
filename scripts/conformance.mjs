// `npm run conformance`: sets up, installs the official suite and a Node that it runs on, and runs it against the
// fixture server, directly and through the gateway. Standard output is the runner's own.

import { join } from 'node:path';
import { installedOnce } from './on-demand.mjs';
import { runNode } from './processes.mjs';
import { setUpOrExit } from './setup.mjs';
import { figuresLine } from './test.mjs';

const SUITE = '@modelcontextprotocol/conformance';
/** The newest that is published: the one that knows both generations. It is not what the tag `latest` names. */
const SUITE_VERSION = '0.2.0-alpha.12';
/** What the suite itself needs; the gateway and the fixture run on the Node that runs this. */
const NODE_MIN = 22;
const NODE_VERSION = '22.23.5';

const args = process.argv.slice(2);
await setUpOrExit({ figures: figuresLine({ passed: 0, failed: 1 }) });
// Somebody who brings a suite along needs none installed.
const own = args.includes('--suite') || args.includes('--help');
process.exitCode = await runNode(['conformance/conformance.mjs', ...(own ? [] : install()), ...args]);

function install() {
  const isNewEnough = Number(process.versions.node.split('.')[0]) >= NODE_MIN;
  const platform = process.platform === 'win32' ? 'win' : process.platform;
  const node = `node-${platform}-${process.arch}`;
  const suite = installedOnce([`${SUITE}@${SUITE_VERSION}`]);
  const program = ['--suite', join(suite, 'node_modules', SUITE, 'dist/index.js')];
  if (isNewEnough) return program;
  const other = installedOnce([`${node}@${NODE_VERSION}`]);
  const file = process.platform === 'win32' ? 'bin/node.exe' : 'bin/node';
  return [...program, '--suite-node', join(other, 'node_modules', node, file)];
}
