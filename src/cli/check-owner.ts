// What `doctor` looks at of what an owner has decided: the passphrase, configurations that wait, servers in `observe`.

import { PASSPHRASE_FILE } from '../access/passphrase-file.ts';
import type { Ledger } from '../engine/ledger.ts';
import { setupOf } from '../gateway/policy-in-force.ts';
import type { Check } from './check-machine.ts';
import { CommandFault } from './output.ts';
import { knownOwner } from './passphrase.ts';
import { toType } from './starter.ts';

export async function checkOwner(ledger: Ledger, data: string): Promise<readonly Check[]> {
  return [await checkPassphrase(ledger, data), ...(await checkPolicies(ledger))];
}

async function checkPassphrase(ledger: Ledger, data: string): Promise<Check> {
  try {
    const owner = await knownOwner(ledger, data);
    return owner === undefined
      ? {
          area: 'passphrase',
          level: 'note',
          found: 'none is set, and without one what cannot be taken back cannot be approved',
          fix: toType('passphrase set'),
        }
      : {
          area: 'passphrase',
          level: 'ok',
          found: `it is set, and ${PASSPHRASE_FILE} is the file that was written`,
        };
  } catch (cause) {
    if (!(cause instanceof CommandFault)) throw cause;
    return { area: 'passphrase', level: 'problem', found: cause.message };
  }
}

async function checkPolicies(ledger: Ledger): Promise<readonly Check[]> {
  const checks: Check[] = [];
  for (const { destination, inForce, waiting } of await ledger.policies.all()) {
    const setup = setupOf(inForce.sources);
    if (!setup.ok) {
      checks.push({
        area: 'policy',
        level: 'problem',
        found: `the configuration of ${destination} that is in force cannot be read any more: its gateway does not start while another one waits`,
        fix: toType('policy show'),
      });
    } else if (setup.config.value.mode === 'observe') {
      checks.push({
        area: 'policy',
        level: 'note',
        found: `${destination} is in observe: each call is sent as it comes, and nothing is guarded`,
        fix: 'mode: guard in its configuration; that needs no confirmation.',
      });
    }
    if (waiting !== undefined) {
      checks.push({
        area: 'policy',
        level: 'note',
        found: `a configuration of ${destination} loosens the one in force, and waits to be confirmed`,
        fix: `${toType('policy show')}, then ${toType(`policy confirm ${destination} --digest ${waiting.digest.slice(0, 12)}`)}`,
      });
    }
  }
  return checks;
}
