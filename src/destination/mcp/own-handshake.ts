// The handshake that we make ourselves, of either generation, and what each request carries after it.

import type { JsonValue } from '../../core/canonical.ts';
import { memberText, scanMembers } from '../../core/json-frame.ts';
import type { Reply } from '../port.ts';
import { withMember, withMembers, withoutMembers } from './json-edit.ts';
import type { Handshake } from './link.ts';
import { CODE_UNSUPPORTED_VERSION, META, MODERN_VERSION, TASKS_EXTENSION } from './mcp-headers.ts';
import type { OwnHandshake } from './upstream.ts';

export const LEGACY_VERSION = '2025-11-25';

/** The handshakes in the order in which they are tried. */
export function handshakeOrder(prefers: OwnHandshake['prefers']): readonly Handshake['method'][] {
  return prefers === 'modern' ? ['server/discover', 'initialize'] : ['initialize', 'server/discover'];
}

export function ownParams(method: Handshake['method'], own: OwnHandshake): string {
  const clientInfo = { name: 'counterfoil', version: own.clientVersion ?? '0' };
  const capabilities = JSON.parse(own.clientCapabilities ?? '{}') as JsonValue;
  return method === 'initialize'
    ? JSON.stringify({ protocolVersion: LEGACY_VERSION, capabilities, clientInfo })
    : JSON.stringify({
        _meta: {
          [META.protocolVersion]: MODERN_VERSION,
          [META.clientInfo]: clientInfo,
          [META.clientCapabilities]: capabilities,
        },
      });
}

/** Whether an answer to a handshake agrees to its generation. */
export function isAgreement(method: Handshake['method'], result: string): boolean {
  if (method === 'initialize') return memberText(result, 'protocolVersion') !== undefined;
  const versions: unknown = JSON.parse(memberText(result, 'supportedVersions') ?? 'null');
  return Array.isArray(versions) && versions.includes(MODERN_VERSION);
}

/**
 * Whether a server of 2026-07-28 has refused the version that a request was of, and names ours among those that it
 * serves: it is asked once more in that version, and is no server of the earlier generation (specification 2026-07-28,
 * basic/lifecycle "Version negotiation").
 */
export function isRefusedForVersion({ kind, code, body }: Reply): boolean {
  if (kind !== 'protocol_error' || code !== CODE_UNSUPPORTED_VERSION) return false;
  const supported: unknown = JSON.parse(memberText(body, 'data', 'supported') ?? 'null');
  return Array.isArray(supported) && supported.includes(MODERN_VERSION);
}

/**
 * The `_meta` of a request after a handshake: of the session-less generation it says what a session said once, taken
 * from the handshake where the request does not say it itself.
 */
export function metaAfter(handshake: Handshake | undefined, given: string | undefined): string | undefined {
  if (handshake?.method !== 'server/discover') return given;
  const agreed = memberText(handshake.params, '_meta');
  if (agreed === undefined) return given;
  const members = [...(scanMembers(agreed)?.values ?? [])]
    .filter(([name]) => !OF_ONE_REQUEST.includes(name))
    .map(([name, { start, end }]) => [name, agreed.slice(start, end)]);
  return withMembers(given ?? '{}', Object.fromEntries(members));
}

export function paramsAfter(handshake: Handshake | undefined, method: string, params: string): string {
  const given = memberText(params, '_meta');
  const after = metaAfter(handshake, given);
  // Who asks after a task knows tasks.
  const meta = method.startsWith('tasks/') ? withTasks(handshake, after, true) : after;
  return meta === given ? params : withMember(params, '_meta', meta);
}

/**
 * The `_meta` of a write, or of a request about its task. Whatever its client has said of itself, a write is not to become
 * a task behind our back: its outcome would come by a way that no attempt sees. A server of 2026-07-28 that has tasks is
 * told that we know them where we follow them ourselves, and else that nobody does.
 */
export function withTasks(
  handshake: Handshake | undefined,
  meta: string | undefined,
  isFollowed: boolean,
): string | undefined {
  if (handshake?.method !== 'server/discover' || meta === undefined) return meta;
  const capabilities = memberText(meta, META.clientCapabilities) ?? '{}';
  const hasTasks =
    isFollowed && memberText(handshake.result, 'capabilities', 'extensions', TASKS_EXTENSION) !== undefined;
  if (!hasTasks && !capabilities.includes(TASKS_EXTENSION)) return meta;
  const extensions = memberText(capabilities, 'extensions') ?? '{}';
  const said = hasTasks
    ? withMembers(extensions, { [TASKS_EXTENSION]: '{}' })
    : withoutMembers(extensions, [TASKS_EXTENSION]);
  return withMember(meta, META.clientCapabilities, withMember(capabilities, 'extensions', said));
}

const OF_ONE_REQUEST: readonly string[] = ['progressToken', META.logLevel];
