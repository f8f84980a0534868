// Who may speak to the HTTP door at all: the Host that was meant, the Origin that a browser tells, the media types.
//
// A page of another site can make a browser send requests to this machine, and DNS rebinding lets it read the
// answers: the name in `Host` is then the attacker's, so only names that are ours are served.

import type { IncomingMessage } from 'node:http';
import { CODE_HTTP_REFUSED, type HttpRefusal, headerOf } from './refusals.ts';

export const LOOPBACK_NAMES: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

/** @param names host names without ports, in lower case; IPv6 addresses in brackets */
export function hostProblem(request: IncomingMessage, names: readonly string[]): HttpRefusal | undefined {
  const host = headerOf(request, 'host');
  const name = host === undefined ? undefined : nameOf(`http://${host}`);
  if (name === undefined || !names.includes(name)) {
    return refused(403, 'The Host header names a host that this gateway does not serve.');
  }
  const origin = headerOf(request, 'origin');
  if (origin === undefined) return undefined;
  const from = nameOf(origin);
  return from !== undefined && names.includes(from)
    ? undefined
    : refused(403, 'The Origin header names a site that this gateway does not serve.');
}

/** The host of an http address without its port; nothing for what carries more, such as user information. */
function nameOf(address: string): string | undefined {
  try {
    const { hostname, protocol, username, password, pathname, search } = new URL(address);
    const isPlain = username === '' && password === '' && pathname === '/' && search === '';
    return isPlain && (protocol === 'http:' || protocol === 'https:') ? hostname : undefined;
  } catch {
    return undefined;
  }
}

/** The media types of a POST: what it carries, and what it can be answered with. */
export function mediaProblem(request: IncomingMessage): HttpRefusal | undefined {
  if (!/^application\/json\s*(?:;|$)/i.test(headerOf(request, 'content-type') ?? '')) {
    return refused(415, 'The Content-Type of a message must be application/json.');
  }
  return accepts(request, 'application/json') || accepts(request, 'text/event-stream')
    ? undefined
    : refused(406, 'The Accept header must list application/json and text/event-stream.');
}

export function accepts(request: IncomingMessage, type: string): boolean {
  const accept = headerOf(request, 'accept');
  if (accept === undefined) return true;
  const [group] = type.split('/');
  return accept
    .toLowerCase()
    .split(',')
    .map((part) => part.split(';')[0]?.trim())
    .some((part) => part === type || part === '*/*' || part === `${group}/*`);
}

export function refused(status: number, message: string, headers?: HttpRefusal['headers']): HttpRefusal {
  return { status, code: CODE_HTTP_REFUSED, message, ...(headers === undefined ? {} : { headers }) };
}
