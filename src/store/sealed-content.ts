// A store whose content documents are encrypted before they reach it, with a key that is kept outside of it (D12): a
// copy of the database alone shows who did what to which system, and nothing of what was in it.
//
// A document's digest, by which histories name it, is over its salt and its own bytes: it is the same whether they are
// sealed or not, and it is what tells that they are the ones that were stored. So the cipher has to hide and need not
// authenticate, and one stream of it serves all documents of a process: a cipher for each would cost an operation a
// tenth of its time. What was stored before content was sealed is read as it is.

import { type Cipher, createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { DelegatingStore } from './delegating-store.ts';
import type { Change, ChangeResult, ContentDocument, DocumentReference, Store } from './port.ts';

/** AES-256 in counter mode (NIST SP 800-38A): a block of the key stream is never used twice. */
const CIPHER = 'aes-256-ctr';
const BLOCK_BYTES = 16;
/** In front of sealed bytes; no text begins with it. The first counter block of the document follows. */
const SEALED = 1;
const TEXT_AT = 1 + BLOCK_BYTES;
/** The rest of a counter block is random, and made anew when so many blocks are used, or by the next process. */
const COUNTER_AT = BLOCK_BYTES - 4;
const STREAM_BLOCKS = 2 ** 31;
export const CONTENT_KEY_BYTES = 32;

/** A document that is there and cannot be opened: altered, or sealed with another key. */
export type Unopened = (reference: DocumentReference) => void;

export class SealedContent extends DelegatingStore {
  readonly #keyBytes: () => Uint8Array;
  readonly #unopened: Unopened;
  #stream: KeyStream | undefined;

  /**
   * @param keyBytes 32 bytes; asked for when the first document is sealed or opened
   * @param unopened told of each document that cannot be opened; who asked for it is given none
   */
  constructor(store: Store, keyBytes: () => Uint8Array, unopened: Unopened) {
    super(store);
    this.#keyBytes = keyBytes;
    this.#unopened = unopened;
  }

  override async commit(changes: readonly Change[]): Promise<readonly ChangeResult[]> {
    return this.inner.commit(changes.map((change) => this.#sealed(change)));
  }

  override async documents(
    tenant: string,
    references: readonly DocumentReference[],
  ): Promise<readonly (ContentDocument | undefined)[]> {
    const documents = await this.inner.documents(tenant, references);
    return documents.map((document) => document && this.#opened(document));
  }

  #sealed(change: Change): Change {
    const { documents } = change;
    if (documents === undefined || documents.length === 0) return change;
    return { ...change, documents: documents.map((document) => this.#seal(document)) };
  }

  #seal(document: ContentDocument): ContentDocument {
    const { bytes, salt } = document;
    const blocks = Math.ceil((salt.length + bytes.length) / BLOCK_BYTES);
    if (this.#stream === undefined || this.#stream.used + blocks > STREAM_BLOCKS) {
      this.#stream = newStream(this.#keyBytes());
    }
    const { cipher, prefix, used } = this.#stream;
    // What fills up the last block is dropped again, whatever it is.
    const whole = Buffer.allocUnsafe(blocks * BLOCK_BYTES);
    whole.set(salt);
    whole.set(bytes, salt.length);
    const hidden = cipher.update(whole);
    this.#stream.used += blocks;
    const sealed = Buffer.allocUnsafe(TEXT_AT + bytes.length);
    sealed[0] = SEALED;
    sealed.set(prefix, 1);
    sealed.writeUInt32BE(used, 1 + COUNTER_AT);
    hidden.copy(sealed, TEXT_AT, salt.length, salt.length + bytes.length);
    return { ...document, salt: hidden.subarray(0, salt.length), bytes: sealed };
  }

  #opened(document: ContentDocument): ContentDocument | undefined {
    const found = document.bytes[0] === SEALED ? this.#unsealed(document) : document;
    const hash = createHash('sha256').update(found.salt).update(found.bytes);
    if (document.digest === `sha256:${hash.digest('hex')}`) return found;
    this.#unopened({ owner: document.owner, digest: document.digest });
    return undefined;
  }

  /** Whatever comes of it: what it should be is told by its digest. */
  #unsealed(document: ContentDocument): ContentDocument {
    const { bytes, salt } = document;
    if (bytes.length < TEXT_AT) return document;
    const decipher = createDecipheriv(CIPHER, this.#keyBytes(), bytes.subarray(1, TEXT_AT));
    const plainSalt = new Uint8Array(decipher.update(salt));
    return { ...document, salt: plainSalt, bytes: new Uint8Array(decipher.update(bytes.subarray(TEXT_AT))) };
  }
}

interface KeyStream {
  readonly cipher: Cipher;
  readonly prefix: Uint8Array;
  /** Blocks. */
  used: number;
}

function newStream(key: Uint8Array): KeyStream {
  const prefix = randomBytes(COUNTER_AT);
  const first = Buffer.concat([prefix, Buffer.alloc(BLOCK_BYTES - COUNTER_AT)]);
  return { cipher: createCipheriv(CIPHER, key, first), prefix, used: 0 };
}
