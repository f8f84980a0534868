// The flags of the conformance run. What is not known is refused: a mistyped flag must not become another run.

import { DAMAGES } from './damaging-proxy.mjs';
import { GENERATIONS } from './suite.mjs';

/** What can be run: through the gateway with the fixture's tools declared as either, and our own client half. */
export const SETTINGS = ['reads', 'writes', 'client'];

export const USAGE = `npm run conformance -- [flags]

  --json                     the last line is one JSON object
  --generation ${GENERATIONS.join('|')}
                             only this one
  --setting ${SETTINGS.join('|')}
                             only this one
  --through URL              in front of the fixture stands what already runs there, in place of the gateway
  --break ${DAMAGES.join('|')}
                             in front of the fixture stands a proxy that damages what passes: it must go red
  --port N                   the fixture listens here, for what --through names (a free port)
  --suite FILE               a suite that is installed already, in place of the official one of this version
  --suite-node FILE          the Node that the suite runs on (this one)`;

/**
 * @returns {{ problem: string } | { help: true } | { json: boolean, generations: readonly string[],
 *   settings: readonly string[], through?: string, damage?: string, port: number, suite: { program: string, node: string } }}
 */
export function readFlags(argv) {
  const flags = { json: false, generations: GENERATIONS, settings: SETTINGS, port: 0 };
  const suite = { node: process.execPath };
  for (let at = 0; at < argv.length; at += 1) {
    const name = argv[at];
    const value = () => {
      at += 1;
      return argv[at] ?? '';
    };
    switch (name) {
      case '--help':
        return { help: true };
      case '--json':
        flags.json = true;
        break;
      case '--generation': {
        const generation = value();
        if (!GENERATIONS.includes(generation)) return { problem: isNoneOf(name, GENERATIONS) };
        flags.generations = [generation];
        break;
      }
      case '--setting': {
        const setting = value();
        if (!SETTINGS.includes(setting)) return { problem: isNoneOf(name, SETTINGS) };
        flags.settings = [setting];
        break;
      }
      case '--through':
        flags.through = value();
        if (!URL.canParse(flags.through)) return { problem: '--through takes an address.' };
        break;
      case '--break':
        flags.damage = value();
        if (!DAMAGES.includes(flags.damage)) return { problem: isNoneOf(name, DAMAGES) };
        break;
      case '--port': {
        const port = value();
        if (!/^\d{1,5}$/.test(port)) return { problem: '--port takes a number.' };
        flags.port = Number(port);
        break;
      }
      case '--suite':
        suite.program = value();
        break;
      case '--suite-node':
        suite.node = value();
        break;
      default:
        return { problem: `${name} is no flag of the conformance run.` };
    }
  }
  if (flags.through !== undefined && flags.damage !== undefined) {
    return { problem: '--through and --break each say what stands in front of the fixture: leave one out.' };
  }
  if (suite.program === undefined) {
    return {
      problem: 'Which suite? `npm run conformance` installs the official one, --suite names another.',
    };
  }
  return { ...flags, suite };
}

function isNoneOf(name, list) {
  return `${name} takes ${list.slice(0, -1).join(', ')} or ${list.at(-1)}.`;
}
