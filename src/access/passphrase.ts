// The owner's passphrase: what is kept of it, and whether one that was typed is it. Only this room parses it.

import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';

/**
 * What is kept: never the passphrase. The costs are kept beside the hash, so that they can rise without making
 * older files useless. They are those that OWASP's "Password Storage Cheat Sheet" gives for scrypt (2^17, 8, 1).
 */
export interface Verifier {
  readonly verifier: 1;
  readonly kind: 'scrypt';
  readonly cost: number;
  readonly blockSize: number;
  readonly parallelization: number;
  /** Base 64. */
  readonly salt: string;
  /** Base 64. */
  readonly hash: string;
}

const COST = { cost: 2 ** 17, blockSize: 8, parallelization: 1 } as const;
/** What a file that somebody else wrote may ask of this machine. */
const COST_MAX = { cost: 2 ** 20, blockSize: 32, parallelization: 16 } as const;
const SALT_BYTES = 16;
const HASH_BYTES = 32;

export const PASSPHRASE_LENGTH_MIN = 12;
export const PASSPHRASE_LENGTH_MAX = 256;

/** Why a text cannot be a passphrase, in words that end a sentence; `undefined` when it can. */
export function passphraseProblem(text: string): string | undefined {
  const { length } = Array.from(text);
  if (length < PASSPHRASE_LENGTH_MIN)
    return `it has ${length} characters; at least ${PASSPHRASE_LENGTH_MIN} are wanted`;
  if (length > PASSPHRASE_LENGTH_MAX)
    return `it has ${length} characters; at most ${PASSPHRASE_LENGTH_MAX} are allowed`;
  return new Set(text).size < 4 ? 'it repeats fewer than four different characters' : undefined;
}

export async function verifierFor(passphrase: string): Promise<Verifier> {
  const salt = randomBytes(SALT_BYTES);
  const hash = await derived(passphrase, salt, COST, HASH_BYTES);
  return {
    verifier: 1,
    kind: 'scrypt',
    ...COST,
    salt: salt.toString('base64'),
    hash: hash.toString('base64'),
  };
}

export async function isPassphrase(passphrase: string, verifier: Verifier): Promise<boolean> {
  const expected = Buffer.from(verifier.hash, 'base64');
  const salt = Buffer.from(verifier.salt, 'base64');
  return timingSafeEqual(await derived(passphrase, salt, verifier, expected.length), expected);
}

/** `undefined` for a text that is no verifier, or one whose costs nobody would have chosen. */
export function readVerifier(text: string): Verifier | undefined {
  let value: Partial<Verifier>;
  try {
    value = JSON.parse(text) as Partial<Verifier>;
  } catch {
    return undefined;
  }
  if (value?.verifier !== 1 || value.kind !== 'scrypt') return undefined;
  const isWithin = (['cost', 'blockSize', 'parallelization'] as const).every((name) => {
    const given = value[name];
    return Number.isSafeInteger(given) && Number(given) >= COST[name] && Number(given) <= COST_MAX[name];
  });
  const isWhole = isBase64(value.salt, SALT_BYTES) && isBase64(value.hash, HASH_BYTES);
  return isWithin && isWhole ? (value as Verifier) : undefined;
}

function isBase64(text: unknown, bytes: number): boolean {
  return typeof text === 'string' && Buffer.from(text, 'base64').length === bytes;
}

type Costs = Pick<Verifier, 'cost' | 'blockSize' | 'parallelization'>;

function derived(passphrase: string, salt: Buffer, costs: Costs, length: number): Promise<Buffer> {
  const { cost, blockSize, parallelization } = costs;
  // Node's own limit is below what these costs need: 128 · cost · blockSize bytes, and a little more.
  const maxmem = 256 * cost * blockSize;
  // The same characters are typed differently on different keyboards and systems (RFC 8265).
  const typed = passphrase.normalize('NFC');
  return new Promise((resolve, reject) => {
    scrypt(typed, salt, length, { cost, blockSize, parallelization, maxmem }, (error, hash) =>
      error === null ? resolve(hash) : reject(error),
    );
  });
}
