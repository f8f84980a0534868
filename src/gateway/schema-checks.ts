// Checking values against the schemas that a server gives for its tools. The schemas are the server's, and must
// not be able to stop us: what takes too long, or cannot be compiled, checks nothing.

import { createContext, Script } from 'node:vm';
import type { ErrorObject, ValidateFunction } from 'ajv';
import type { JsonObject, JsonValue } from '../core/canonical.ts';

const SCHEMA_TEXT_MAX = 256 * 1024;
const KEPT_MAX = 512;
const COMPILE_MS = 2_000;
/** A pattern can take longer than the age of the world for thirty characters; a busy machine can hold up a check for long. */
const CHECK_MS = 1_000;

/** Compiles schemas once each. A schema that cannot be used checks nothing: the server checks for itself. */
export class SchemaChecks {
  readonly #kept = new Map<string, ValidateFunction | undefined>();
  readonly #report: (message: string) => void;

  constructor(report: (message: string) => void) {
    this.#report = report;
  }

  /** What the schema says against the value, in words; `undefined` when it fits or cannot be checked. */
  async problem(schema: JsonObject | undefined, value: JsonValue, what: string): Promise<string | undefined> {
    if (schema === undefined) return undefined;
    const text = JSON.stringify(schema);
    if (!this.#kept.has(text)) {
      if (this.#kept.size >= KEPT_MAX) this.#kept.clear();
      this.#kept.set(text, await this.#compiled(schema, text, what));
    }
    const validate = this.#kept.get(text);
    if (validate === undefined) return undefined;
    try {
      if (within(CHECK_MS, () => validate(value))) return undefined;
    } catch (cause) {
      this.#kept.set(text, undefined);
      this.#tellUnused(what, cause);
      return undefined;
    }
    return (validate.errors ?? []).slice(0, 3).map(inWords).join('; ');
  }

  async #compiled(schema: JsonObject, text: string, what: string): Promise<ValidateFunction | undefined> {
    try {
      if (text.length > SCHEMA_TEXT_MAX) throw new Error(`it is ${text.length} characters long`);
      // Loaded when first needed: reading costs nothing for it.
      const isDraft7 = typeof schema['$schema'] === 'string' && schema['$schema'].includes('draft-07');
      const { Ajv } = isDraft7 ? await import('ajv') : { Ajv: (await import('ajv/dist/2020.js')).Ajv2020 };
      const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: false, logger: false });
      const validate = within(COMPILE_MS, () => ajv.compile(schema));
      // Its promise would be rejected where nobody waits for it.
      if ('$async' in validate) throw new Error('it says that it is checked asynchronously');
      return validate;
    } catch (cause) {
      this.#tellUnused(what, cause);
      return undefined;
    }
  }

  #tellUnused(what: string, cause: unknown): void {
    const why = cause instanceof Error ? cause.message : String(cause);
    this.#report(
      `The schema of ${what} cannot be used to check calls, so that its server alone checks them: ${why}`,
    );
  }
}

const room: { work: () => unknown } = { work: () => undefined };
const roomContext = createContext(room);
const doWork = new Script('work()');

/** Runs work that somebody else has a say in; a script of its own is the only thing that can be ended. */
function within<Result>(timeoutMs: number, work: () => Result): Result {
  room.work = work;
  return doWork.runInContext(roomContext, { timeout: timeoutMs }) as Result;
}

function inWords(error: ErrorObject): string {
  const at = error.instancePath === '' ? '' : `${error.instancePath.slice(1).replaceAll('/', '.')} `;
  if (error.keyword === 'required') return `${at}"${String(error.params['missingProperty'])}" is required`;
  if (error.keyword === 'additionalProperties') {
    return `${at}"${String(error.params['additionalProperty'])}" is not an argument of this tool`;
  }
  return `${at}${error.message ?? 'does not fit'}`;
}
