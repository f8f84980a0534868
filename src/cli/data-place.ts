// Where the data directory is: `--data`, else COUNTERFOIL_DATA, else the user's data directory.

import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

export function dataDirectory(option: string | undefined): string {
  const given = option ?? process.env['COUNTERFOIL_DATA'];
  if (given !== undefined && given !== '') return resolve(given);
  const base = process.env['XDG_DATA_HOME'] ?? join(homedir(), '.local', 'share');
  return join(base, 'counterfoil');
}
