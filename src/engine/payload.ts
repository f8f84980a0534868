// The frozen payload of an operation: read back from its document, and the digest recomputed from it.

import type { JsonObject, JsonValue } from '../core/canonical.ts';
import { sha256Hex } from '../core/digest.ts';
import type { FrozenWrite } from '../core/http-request.ts';
import { operationDigest } from '../core/intent.ts';
import type { Operation } from '../core/operation.ts';
import type { EngineContext } from './context.ts';
import { streamOf } from './records.ts';

export interface TargetDocument {
  readonly type: string;
  readonly ids: readonly string[];
}

export interface StoredPayload {
  /** The canonical JSON text that is sent. */
  readonly text: string;
  readonly arguments: JsonObject;
  /** Recomputed from what the store holds now; differs from `operation.digest` when something was altered. */
  readonly digest: string;
  readonly target: TargetDocument | undefined;
}

/** What the stored documents of an operation hold; a missing document gives a digest that cannot match. */
export async function readPayload(context: EngineContext, operation: Operation): Promise<StoredPayload> {
  const owner = streamOf(operation.id);
  const references = [{ owner, digest: operation.payload.document }];
  if (operation.target !== undefined) references.push({ owner, digest: operation.target.document });
  const [payload, target] = await context.store.documents(context.tenant, references);
  const text = payload === undefined ? '' : Buffer.from(payload.bytes).toString('utf8');
  const parsedTarget =
    target === undefined
      ? undefined
      : (JSON.parse(Buffer.from(target.bytes).toString('utf8')) as TargetDocument);
  return {
    text,
    arguments: parsedArguments(text, operation.payload.holds === 'http_request'),
    digest: digestOf({
      tenant: operation.tenant,
      destination: operation.destination,
      tool: operation.tool,
      requester: operation.requester,
      payloadSha256: sha256Hex(text),
      target: parsedTarget,
    }),
    target: parsedTarget,
  };
}

function parsedArguments(text: string, isFrozenRequest: boolean): JsonObject {
  try {
    const payload = JSON.parse(text) as JsonObject;
    return isFrozenRequest ? (payload as unknown as FrozenWrite).arguments : payload;
  } catch {
    // Altered behind our back: the digest says so, and nothing is sent.
    return {};
  }
}

/** D2's digest of an operation, from the hash of the payload text as it is. */
export function digestOf(parts: {
  readonly tenant: string;
  readonly destination: string;
  readonly tool: string;
  readonly requester: string;
  readonly payloadSha256: string;
  readonly target: TargetDocument | undefined;
}): string {
  return operationDigest({
    tenant: parts.tenant,
    destination: parts.destination,
    tool: parts.tool,
    requester: parts.requester,
    payloadSha256: parts.payloadSha256,
    target: (parts.target ?? null) as unknown as JsonValue,
    expectedVersion: null,
    preconditions: [],
  });
}

/** The target in words: `file /srv/a.txt`. */
export function targetWords(target: TargetDocument | undefined): string | undefined {
  return target === undefined ? undefined : `${target.type} ${target.ids.join(', ')}`;
}
