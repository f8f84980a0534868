// Who runs the command, as far as the operating system tells.

import { userInfo } from 'node:os';

/** The name that this account has here; decisions say so, and how little that proves. */
export function localAccount(): string {
  try {
    return userInfo().username;
  } catch {
    return 'local account';
  }
}
