// What the server says of its own durability, read back on every connection that writes, and refused where a commit that
// it has confirmed could be lost.

import { type Durability, StoreFault } from '../port.ts';
import type { Line } from './line.ts';
import { WAIVABLE, type Waivable } from './settings.ts';

const ASKED = [
  ...WAIVABLE,
  'synchronous_standby_names',
  'server_version',
  'server_version_num',
  'server_encoding',
  'in_hot_standby',
  'default_transaction_read_only',
  'default_transaction_isolation',
];

const OLDEST = 140_000;

/**
 * @throws {StoreFault} `ERR_STORE_UNSAFE` for settings under which what was confirmed may be lost, `ERR_STORE_VERSION`
 *   for a server older than 14, `ERR_STORE_UNAVAILABLE` for one that cannot be written to
 */
export async function readDurability(
  line: Line,
  { place, waived }: { readonly place: string; readonly waived: readonly Waivable[] },
): Promise<Durability> {
  const rows = await line.run({
    text: 'SELECT name, setting FROM pg_settings WHERE name = ANY($1::text[])',
    values: [ASKED],
  });
  const settings = new Map(rows as readonly (readonly [string, string])[]);
  const refuse = (code: StoreFault['code'], why: string): never => {
    throw new StoreFault(code, `The store at ${place} was not opened: ${why}.`, { fate: 'not_stored' });
  };
  const version = settings.get('server_version') ?? '';
  if (!(Number(settings.get('server_version_num')) >= OLDEST)) {
    refuse('ERR_STORE_VERSION', `its server is PostgreSQL ${version}, and 14 is the oldest that is used`);
  }
  const encoding = settings.get('server_encoding');
  if (encoding !== 'UTF8') {
    refuse('ERR_STORE_UNAVAILABLE', `its database has the encoding ${encoding}, and UTF8 is needed`);
  }
  if (settings.get('in_hot_standby') === 'on' || settings.get('default_transaction_read_only') === 'on') {
    refuse('ERR_STORE_UNAVAILABLE', 'its server is read-only, as a standby is; name the primary');
  }
  const shown: { [name: string]: string } = {
    isolation: settings.get('default_transaction_isolation') ?? '',
  };
  for (const name of WAIVABLE) {
    const value = settings.get(name) ?? 'not reported';
    const isSafe = isSafeSetting(name, value, settings.get('synchronous_standby_names') ?? '');
    if (!isSafe && !waived.includes(name)) {
      refuse(
        'ERR_STORE_UNSAFE',
        `${name} is ${value}, and a commit that was confirmed could be lost; set it to on, or waive ${name} by name`,
      );
    }
    shown[name] = isSafe ? value : `${value} (waived)`;
  }
  return { engine: 'postgres', version, settings: shown };
}

function isSafeSetting(name: Waivable, value: string, standbys: string): boolean {
  if (name !== 'synchronous_commit') return value === 'on';
  // Without a standby that is waited for, these two wait for the disk of this machine, as `on` does.
  return (
    ['on', 'remote_apply'].includes(value) || (standbys === '' && ['local', 'remote_write'].includes(value))
  );
}
