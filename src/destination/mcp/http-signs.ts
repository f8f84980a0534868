// What a server over HTTP shows beside the protocol that we speak: a sign-in, or the older transport. Asked only when
// a person is about to put us in front of it; nothing is called.

const PATIENCE_MS = 5_000;
const READ_MAX_BYTES = 64 * 1024;

/**
 * Whether the server says where its clients sign in (RFC 9728, 3.1: the well-known address before the server's own path,
 * and, as the MCP specification's "Authorization" has it, at the root).
 */
export async function offersSignIn(url: string): Promise<boolean> {
  const { origin, pathname } = new URL(url);
  const wellKnown = `${origin}/.well-known/oauth-protected-resource`;
  const places = new Set([`${wellKnown}${pathname === '/' ? '' : pathname}`, wellKnown]);
  for (const place of places) {
    const text = await read(place, { accept: 'application/json' });
    if (text !== undefined && namesAuthorizationServers(text)) return true;
  }
  return false;
}

function namesAuthorizationServers(text: string): boolean {
  try {
    const { authorization_servers: servers } = JSON.parse(text) as {
      readonly authorization_servers?: unknown;
    };
    return Array.isArray(servers) && servers.length > 0;
  } catch {
    return false;
  }
}

/** Whether a GET begins the stream of the transport of 2024-11-05, whose first event says where to post. */
export async function speaksOlderTransport(
  url: string,
  headers: Readonly<Record<string, string>>,
): Promise<boolean> {
  const text = await read(url, { ...headers, accept: 'text/event-stream' }, /\n\r?\n/);
  return text !== undefined && /^event:\s*endpoint\s*$/m.test(text);
}

/** The beginning of what is there, up to its end or what `enough` finds; nothing where it is no success. */
async function read(
  url: string,
  headers: Readonly<Record<string, string>>,
  enough?: RegExp,
): Promise<string | undefined> {
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(), PATIENCE_MS);
  try {
    const response = await fetch(url, { headers, redirect: 'manual', signal: over.signal });
    if (!response.ok || response.body === null) return undefined;
    let text = '';
    const decoder = new TextDecoder();
    for await (const chunk of response.body) {
      text += decoder.decode(chunk as Uint8Array, { stream: true });
      if (enough?.test(text) === true || text.length > READ_MAX_BYTES) break;
    }
    return text;
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
    over.abort();
  }
}
