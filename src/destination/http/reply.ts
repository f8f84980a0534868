// From the bytes of an HTTP reply to what the port reports: unpacked within its cap, its text read, and whatever need
// not be the destination's own answer marked as such.

import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate } from 'node:zlib';
import type { ReplyDoubt } from '../../core/reply-places.ts';
import type { Reply } from '../port.ts';

export interface RawReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export interface ReplyForm {
  /** What an acknowledgement is made of. */
  readonly form: 'json' | 'any';
  readonly replyMaxBytes: number;
  /** Names of headers that the contract reads, in small letters. */
  readonly keptHeaders: ReadonlySet<string>;
}

export type UnpackedReply = { readonly reply: Reply } | { readonly unreadable: string };

export async function unpackReply(raw: RawReply, form: ReplyForm): Promise<UnpackedReply> {
  const unpacked = await unpack(raw, form.replyMaxBytes);
  if (typeof unpacked === 'string') return { unreadable: unpacked };
  const text = decode(unpacked);
  if (text === undefined) return { unreadable: 'the reply is no text in UTF-8' };
  const type = (raw.headers['content-type'] ?? '').toLowerCase();
  const json = parsed(text);
  const doubt = doubtOf(raw.status, { type, isEmpty: text.trim() === '', isJson: json }, form.form);
  return {
    reply: {
      kind: raw.status < 300 ? 'result' : 'tool_error',
      // The port carries JSON text: what is none is carried as a text in it.
      body: text.trim() === '' ? 'null' : json ? text : JSON.stringify(text),
      code: raw.status,
      headers: keptHeaders(raw.headers, form.keptHeaders),
      ...(doubt === undefined ? {} : { doubt }),
    },
  };
}

const UNPACK: { readonly [encoding: string]: (bytes: Buffer, max: number) => Promise<Buffer> } = {
  gzip: (bytes, maxOutputLength) => promisify(gunzip)(bytes, { maxOutputLength }),
  'x-gzip': (bytes, maxOutputLength) => promisify(gunzip)(bytes, { maxOutputLength }),
  deflate: (bytes, maxOutputLength) => promisify(inflate)(bytes, { maxOutputLength }),
  br: (bytes, maxOutputLength) => promisify(brotliDecompress)(bytes, { maxOutputLength }),
};

/** More layers than anybody uses are an attack, or a mistake that cannot be read. */
const LAYERS_MAX = 2;

/** @returns a sentence where it cannot be unpacked; no more than the cap is ever unpacked */
async function unpack({ body, headers }: RawReply, max: number): Promise<Buffer | string> {
  const layers = (headers['content-encoding'] ?? '')
    .toLowerCase()
    .split(',')
    .map((layer) => layer.trim())
    .filter((layer) => layer !== '' && layer !== 'identity');
  if (layers.length > LAYERS_MAX) return `the reply is packed ${layers.length} times`;
  let bytes = body;
  for (const layer of layers.toReversed()) {
    const unpackLayer = Object.hasOwn(UNPACK, layer) ? UNPACK[layer] : undefined;
    if (unpackLayer === undefined) return `the reply is packed as ${layer}, which is not known here`;
    try {
      bytes = bytes.length === 0 ? bytes : await unpackLayer(bytes, max);
    } catch (cause) {
      const isLong = (cause as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
      return isLong
        ? `the reply unpacks to more than ${max} bytes`
        : `the reply cannot be unpacked as ${layer}`;
    }
  }
  return bytes;
}

function decode(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function parsed(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Statuses that proxies and load balancers make by themselves (RFC 9110; 52x: Cloudflare's). */
const OF_GATEWAYS: ReadonlySet<number> = new Set([408, 502, 503, 504, 511]);

function doubtOf(
  status: number,
  body: { readonly type: string; readonly isEmpty: boolean; readonly isJson: boolean },
  form: 'json' | 'any',
): ReplyDoubt | undefined {
  if (status >= 300 && status < 400) return 'redirect';
  if (/^(text\/html|application\/xhtml)/.test(body.type)) return 'page';
  if (OF_GATEWAYS.has(status) || status >= 520) return 'gateway';
  if (status >= 400 || form === 'any') return undefined;
  if (body.isEmpty) return 'empty';
  return body.isJson ? undefined : 'page';
}

/** Beside those that a contract names: what tells where, which version, when, and how it is to be gone on. */
const ALWAYS_KEPT: readonly string[] = [
  'content-type',
  'content-location',
  'date',
  'etag',
  'last-modified',
  'link',
  'location',
  'retry-after',
];

/** A credential in a reply is nobody's business but the client's. */
const NEVER_KEPT: ReadonlySet<string> = new Set([
  'set-cookie',
  'set-cookie2',
  'authorization',
  'www-authenticate',
]);
const HEADER_LENGTH_MAX = 4096;

function keptHeaders(
  headers: Readonly<Record<string, string>>,
  named: ReadonlySet<string>,
): { readonly [name: string]: string } {
  return Object.fromEntries(
    Object.entries(headers).filter(
      ([name, value]) =>
        (ALWAYS_KEPT.includes(name) || named.has(name)) &&
        !NEVER_KEPT.has(name) &&
        value.length <= HEADER_LENGTH_MAX,
    ),
  );
}
