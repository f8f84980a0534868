// What a result of one generation lacks in the other's eyes, and nothing else is changed: protocol 2026-07-28 requires
// a type of every result and two hints about caching of some (specification 2026-07-28, basic/index "ResultType" and
// server/utilities/caching).

import { memberText } from '../core/json-frame.ts';
import { withMember, withMembers } from '../destination/mcp/json-edit.ts';

const CACHEABLE: ReadonlySet<string> = new Set([
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
]);

/** A result as a client of 2026-07-28 must be given it; what is there already keeps its bytes. */
export function modernResult(method: string, result: string): string {
  const isComplete = (memberText(result, 'resultType') ?? '"complete"') === '"complete"';
  const hints = isComplete && CACHEABLE.has(method) ? { ttlMs: '0', cacheScope: '"private"' } : {};
  return withMembers(result, { resultType: '"complete"', ...hints });
}

/** "No such resource" has another number since 2026-07-28, which forbids the earlier one. */
const RESOURCE_NOT_FOUND = '-32002';

export function modernError(error: string): string {
  return memberText(error, 'code') === RESOURCE_NOT_FOUND ? withMember(error, 'code', '-32602') : error;
}
