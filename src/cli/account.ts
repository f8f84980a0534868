// Who runs the command, as far as the operating system tells.

import { userInfo } from 'node:os';
import { localPrincipal } from '../access/principals.ts';

/** The name that this account has here; decisions say so, and how little that proves. */
export function localAccount(): string {
  try {
    return userInfo().username;
  } catch {
    return 'local account';
  }
}

/** Whoever runs the command, as rules name principals; whatever name is given beside it. */
export function ownPrincipal(): string {
  return localPrincipal(localAccount());
}
