// Secrets by reference: read when a request is made, never kept in the ledger, and taken out of whatever a destination
// repeats of them.

import { readFileSync } from 'node:fs';

/** Where a secret lies: a variable of the environment, or a file. */
export type SecretReference = { readonly env: string } | { readonly file: string };

export type SecretReading =
  | { readonly ok: true; readonly value: string }
  /** A sentence's second half; it names the reference and nothing of the value. */
  | { readonly ok: false; readonly why: string };

export class Secrets {
  readonly #references: ReadonlyMap<string, SecretReference>;
  readonly #environment: { readonly [name: string]: string | undefined };
  /** Values that were read, each with the name that stands in its place; only the latest of a name. */
  readonly #seen = new Map<string, string>();

  constructor(
    references: { readonly [name: string]: SecretReference },
    environment: { readonly [name: string]: string | undefined },
  ) {
    this.#references = new Map(Object.entries(references));
    this.#environment = environment;
  }

  /** Read anew each time: a secret is exchanged without a restart. */
  read(name: string): SecretReading {
    const reading = this.#readAt(name, this.#references.get(name));
    if (reading.ok) this.#seen.set(name, reading.value);
    return reading;
  }

  #readAt(name: string, reference: SecretReference | undefined): SecretReading {
    if (reference === undefined) return { ok: false, why: `the secret ${name} is not configured` };
    if ('env' in reference) {
      const value = this.#environment[reference.env]?.trim() ?? '';
      if (value !== '') return usable(name, value);
      return { ok: false, why: `the secret ${name} is not there: the variable ${reference.env} is not set` };
    }
    try {
      const value = readFileSync(reference.file, 'utf8').trim();
      if (value !== '') return usable(name, value);
      return { ok: false, why: `the secret ${name} is not there: its file is empty` };
    } catch (cause) {
      const { code = 'it cannot be read' } = cause as NodeJS.ErrnoException;
      return { ok: false, why: `the secret ${name} is not there: its file cannot be read (${code})` };
    }
  }

  /** A text with the names of secrets in braces, filled in. */
  fill(text: string): SecretReading {
    let missing: string | undefined;
    const value = text.replace(/\{([^{}]*)\}/g, (_, name: string) => {
      const reading = this.read(name);
      if (reading.ok) return reading.value;
      missing ??= reading.why;
      return '';
    });
    return missing === undefined ? { ok: true, value } : { ok: false, why: missing };
  }

  /** The text without the values of secrets: a destination may repeat what it was sent. */
  without(text: string): string {
    let clean = text;
    for (const [name, value] of this.#seen) {
      if (value.length < HIDDEN_MIN) continue;
      for (const form of new Set([value, JSON.stringify(value).slice(1, -1)])) {
        clean = clean.replaceAll(form, `[the secret ${name}]`);
      }
    }
    return clean;
  }
}

/** What is shorter occurs by chance, and taking it out would change what was answered. */
const HIDDEN_MIN = 8;

function usable(name: string, value: string): SecretReading {
  // As in headers of HTTP: a line break would begin another header.
  if (/^[\t\x20-\x7e]+$/.test(value)) return { ok: true, value };
  return { ok: false, why: `the secret ${name} has characters that no header can carry` };
}
