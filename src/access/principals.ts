// Names of principals: who asks, by how it is known that they do.

const LOCAL = 'local:';

/** The operating system's account, to which the data directory belongs. */
export function localPrincipal(account: string): string {
  return `${LOCAL}${account}`;
}

export function isLocalPrincipal(principal: string): boolean {
  return principal.startsWith(LOCAL);
}
