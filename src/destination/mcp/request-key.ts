// The ids of JSON-RPC requests, as keys that do not depend on how they are spelled.

/**
 * The id of a request as a key, however it is spelled (servers and clients may write one string with different
 * escapes); `undefined` for what MCP does not allow as an id.
 */
export function requestKey(idText: string | undefined): string | undefined {
  if (idText === undefined) return undefined;
  try {
    const id: unknown = JSON.parse(idText);
    return typeof id === 'string' || Number.isSafeInteger(id) ? JSON.stringify(id) : undefined;
  } catch {
    return undefined;
  }
}
