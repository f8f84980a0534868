// The systems that are written to: what each promises, and what it does. In this model every promise is true.
//
// Each keeps a log of what arrived and a list of what it made, both under the names that only the model knows
// (operation and attempt), so that a ledger is never asked what it did.

const SOURCE = { grade: 'source' };
const TITLE = ['title'];

const OUTCOMES = [
  { when: { kind: ['tool_error'], text_starts: ['REJECTED'] }, means: 'not_applied', evidence: SOURCE },
  { when: { kind: ['tool_error'], text_starts: ['BUSY'] }, means: 'not_applied_temporary', evidence: SOURCE },
  { when: { kind: ['tool_error'], text_starts: ['EXISTS'] }, means: 'already_applied', evidence: SOURCE },
];

const findByRef = (consistency, absent) => ({
  by: 'client_reference',
  tool: { name: 'find', arguments: { ref: '{$stamp}' } },
  found: { items: { from: 'json', path: '' }, record: '/id', version: '/version' },
  consistency,
  unique: 'yes',
  proves: { present: 'applied', absent },
  evidence: SOURCE,
});

const keyGuard = (window) => ({
  kind: 'request_key',
  carrier: { in: 'body', name: 'ref', encoding: 'opaque' },
  scope: ['account'],
  window: { kind: 'duration', at_least: window, from: 'first_accept', after: 'executes_again' },
  same: { result: 'replays_original', side_effects: 'once' },
  different: { result: 'rejected' },
  in_flight: { result: 'serialised' },
  strength: 'enforced',
  evidence: SOURCE,
});

const identityGuard = {
  kind: 'client_identity',
  carrier: { in: 'body', name: 'ref', encoding: 'opaque' },
  scope: ['account'],
  window: { kind: 'resource_lifetime' },
  same: { result: 'conflict', side_effects: 'once' },
  different: { result: 'conflict' },
  in_flight: { result: 'serialised' },
  after_delete: 'not_applicable',
  strength: 'enforced',
  evidence: SOURCE,
};

const written = (id, more) => ({
  id,
  match: [],
  effect: 'create',
  completion: { kind: 'synchronous' },
  acknowledgement: {
    record: { from: 'json', path: '/id' },
    version: { from: 'json', path: '/version' },
  },
  guards: [],
  lookups: [],
  outcomes: OUTCOMES,
  reversals: [{ kind: 'none', evidence: SOURCE }],
  limits: { late_arrival: 'PT20S' },
  ...more,
});

const READ_AFTER_WRITE = findByRef({ kind: 'read_after_write' }, 'not_applied');
const LAGGING = findByRef({ kind: 'eventual', settle: 'PT8S' }, 'not_applied_after_settle');
const SET = {
  effect: 'update',
  readback: {
    tool: { name: 'get', arguments: { title: '{title}' } },
    matches: [{ from: 'json', path: '/value', equals: '{value}' }],
    version: { from: 'json', path: '/version' },
    evidence: SOURCE,
  },
  version: { kind: 'revision', aba_safe: 'yes', enforced: 'none', evidence: SOURCE },
};

/** Facts by destination and tool; `keyMs`: how long the destination knows a key again. */
export const CLASSES = {
  R0: { tools: { create: {}, append: { repeat: 'free' }, set: { repeat: 'state', target: true } } },
  R1: {
    tools: {
      create: { operation: written('create', { lookups: [READ_AFTER_WRITE] }) },
      set: {
        repeat: 'state',
        target: true,
        operation: written('set', { ...SET, lookups: [READ_AFTER_WRITE] }),
      },
      destroy: {
        class: 'irreversible',
        target: true,
        operation: written('destroy', { effect: 'delete', lookups: [READ_AFTER_WRITE] }),
      },
    },
  },
  R1L: { lagMs: 8_000, tools: { create: { operation: written('create', { lookups: [LAGGING] }) } } },
  R2: {
    keyMs: 120_000,
    tools: {
      create: { operation: written('create', { guards: [keyGuard('PT2M')] }) },
      pay: {
        class: 'irreversible',
        operation: written('pay', { guards: [keyGuard('PT2M')], lookups: [READ_AFTER_WRITE] }),
      },
    },
  },
  /** Knows a key for little longer than a request may be on its way. */
  R2S: {
    keyMs: 40_000,
    tools: { create: { operation: written('create', { guards: [keyGuard('PT40S')] }) } },
  },
  R3: {
    keyMs: Number.POSITIVE_INFINITY,
    isConflict: true,
    tools: {
      create: { operation: written('create', { guards: [identityGuard], lookups: [READ_AFTER_WRITE] }) },
    },
  },
};

/** The greatest time from a first byte to its arrival. Contracts promise a second more, for clocks that differ. */
export const ARRIVES_MS = 19_000;

export class ModelDestination {
  isDown = false;
  /** In order of arrival: { at, operation, attempt, tool, payload, outcome }. */
  log = [];
  /** What was made: { id, operation, attempt, at, title, value, version }. */
  records = [];
  #answers = new Map();
  #class;
  #random;

  /** @param sending how much of its owner's may be out at once, and leave in a time */
  constructor(name, random, sending = {}) {
    this.name = name;
    this.sending = sending;
    this.#class = CLASSES[name];
    this.#random = random;
  }

  get tools() {
    return Object.keys(this.#class.tools);
  }

  factsOf(tool) {
    const given = this.#class.tools[tool];
    if (given === undefined) return undefined;
    const { target, ...more } = given;
    return {
      destination: this.name,
      tool,
      class: 'ordinary',
      classSource: 'configuration',
      repeat: 'unique',
      identity: tool === 'set' ? ['title', 'value'] : TITLE,
      checksArguments: false,
      digest: `${this.name}/${tool}`,
      contract: { id: this.name, revision: 1, reviewBy: '2099-01-01' },
      ...(more.operation === undefined ? {} : { stamp: { argument: 'ref' } }),
      sending: this.sending,
      ...(target === true ? { target: { type: 'thing', id: ['{title}'] } } : {}),
      ...more,
    };
  }

  /** Whether a repeat of the same bytes is harmless now, `ms` after the first. */
  forgives(ms) {
    return this.#class.keyMs !== undefined && ms < this.#class.keyMs;
  }

  /** Whether an absence that is true lets the same be sent again. */
  absenceCounts(tool) {
    const { operation } = this.#class.tools[tool];
    return operation?.lookups[0]?.proves.absent === 'not_applied';
  }

  recordsOf(operation) {
    return this.records.filter((record) => record.operation === operation);
  }

  /** One delivery. The same attempt is answered the same way however often it arrives, where it is refused. */
  handle({ operation, attempt, tool, payload }, at) {
    const args = JSON.parse(payload);
    const entry = { at, operation, attempt, tool, payload, outcome: 'applied' };
    this.log.push(entry);
    const hasContract = this.#class.tools[tool].operation !== undefined;
    const key = `${attempt}`;
    const decided = this.#answers.get(key) ?? this.#verdict(hasContract);
    this.#answers.set(key, decided);
    if (decided !== 'apply') {
      entry.outcome = decided;
      return error(decided.toUpperCase());
    }
    const first =
      this.#class.keyMs === undefined ? undefined : this.records.find((one) => one.ref === args.ref);
    if (first !== undefined && at - first.at < this.#class.keyMs) {
      entry.outcome = 'known';
      return this.#class.isConflict === true ? error('EXISTS already') : result(first);
    }
    const same = this.records.filter((one) => one.title === args.title);
    const record = {
      id: `${this.name}-${this.records.length + 1}`,
      operation,
      attempt,
      at,
      tool,
      ref: args.ref,
      title: args.title,
      value: args.value,
      version: String(same.length + 1),
    };
    this.records.push(record);
    return result(record);
  }

  #verdict(hasContract) {
    if (this.#random.chance(0.05)) return hasContract ? 'rejected' : 'oops';
    if (hasContract && this.#random.chance(0.08)) return 'busy';
    return hasContract && this.#random.chance(0.02) ? 'oops' : 'apply';
  }

  ask(tool, payload, at) {
    const args = JSON.parse(payload);
    if (tool === 'get') {
      const latest = this.records.findLast(({ title, tool: by }) => title === args.title && by === 'set');
      return latest === undefined ? error('NONE') : result(latest);
    }
    const visible = this.records.filter(
      ({ at: madeAt, ref }) => ref === args.ref && this.#isSeen(madeAt, at),
    );
    return text(JSON.stringify(visible.map(({ id, version }) => ({ id, version }))));
  }

  #isSeen(madeAt, at) {
    const { lagMs } = this.#class;
    return lagMs === undefined || at - madeAt >= lagMs * (0.2 + 0.79 * this.#random.next());
  }
}

function text(words, more = {}) {
  const body = JSON.stringify({ content: [{ type: 'text', text: words }], ...more });
  return { kind: more.isError === true ? 'tool_error' : 'result', body };
}

function result({ id, version, value }) {
  return text(JSON.stringify({ id, version, ...(value === undefined ? {} : { value }) }));
}

function error(words) {
  return text(words, { isError: true });
}
