// A store in plain maps that keeps the port's promises: the one that the simulation is played on, and that passes the
// suite of every adapter. What is stored, and when it is answered, are two things; a handle's `delays` decides both.

/** Loaded by whoever makes a place: the checks of the port come from the build under test. */
export class ModelPlace {
  /** tenant → stream → { version, state, fixed, live, markedAt, events } */
  #tenants = new Map();
  commits = 0;
  /** Told of each change that was stored, with the handle that stored it. */
  onStored;
  /** Planted bugs of the store: `stale`, `taken`, `durability`. */
  ignores = new Set();

  tenant(name) {
    let tenant = this.#tenants.get(name);
    if (tenant === undefined) {
      tenant = { streams: new Map(), claims: new Map(), documents: new Map(), crossRun: new Map() };
      this.#tenants.set(name, tenant);
    }
    return tenant;
  }

  /** Decides one change in the state as it is, and stores it where it stands. */
  decide(change, handle) {
    const tenant = this.tenant(change.tenant);
    const refusal = this.#obstacle(tenant, change);
    if (refusal !== undefined) return refusal;
    for (const write of change.writes) writeStream(tenant, write, change.at);
    for (const claim of change.claims) claimsOf(tenant, claim.key).set(claim.sequence, claim.holder);
    for (const document of change.documents) {
      const key = `${document.owner}\n${document.digest}`;
      if (!tenant.documents.has(key)) tenant.documents.set(key, document);
    }
    for (const { key, stream } of change.crossRun) {
      const streams = tenant.crossRun.get(key) ?? new Set();
      tenant.crossRun.set(key, streams.add(stream));
    }
    for (const { stream, version } of change.marks) {
      const row = tenant.streams.get(stream);
      if (row !== undefined && row.version === version) row.markedAt ??= change.at;
    }
    this.onStored?.(change, handle);
    return { outcome: 'stored' };
  }

  #obstacle(tenant, { writes, requires, claims, documents, crossRun }) {
    const versionOf = (stream) => tenant.streams.get(stream)?.version ?? 0;
    const expected = [
      ...writes.map(({ stream, expectedVersion }) => ({ stream, version: expectedVersion })),
      ...requires,
    ];
    for (const { stream, version } of expected) {
      const present = versionOf(stream);
      if (present !== version && !this.ignores.has('stale'))
        return { outcome: 'stale', stream, version: present };
    }
    const isMissing = (stream) => versionOf(stream) === 0 && !writes.some((write) => write.stream === stream);
    const missing =
      claims.find(({ holder }) => isMissing(holder))?.holder ??
      documents.find(({ owner }) => isMissing(owner))?.owner ??
      crossRun.find(({ stream }) => isMissing(stream))?.stream;
    if (missing !== undefined) return { outcome: 'stale', stream: missing, version: 0 };
    for (const { key, sequence } of claims) {
      const by = tenant.claims.get(key)?.get(sequence);
      if (by !== undefined && !this.ignores.has('taken')) return { outcome: 'taken', key, sequence, by };
    }
    return undefined;
  }
}

function claimsOf(tenant, key) {
  const claims = tenant.claims.get(key) ?? new Map();
  tenant.claims.set(key, claims);
  return claims;
}

function writeStream(tenant, { stream, state, events, fixed, live }, at) {
  const before = tenant.streams.get(stream);
  const version = (before?.version ?? 0) + 1;
  const stored = events.map((event) => ({ version, at, event }));
  tenant.streams.set(stream, {
    version,
    state,
    fixed: before?.fixed ?? fixed,
    live: live === undefined ? (before?.live ?? null) : live,
    events: before === undefined ? stored : [...before.events, ...stored],
  });
}

/** What a handle does at once: the calls of one turn together, in a microtask. */
export const AT_ONCE = { transaction: (fire) => queueMicrotask(fire), reading: (take) => take()() };

export class ModelHandle {
  durability = { engine: 'model', version: '1', settings: { durable: 'as long as its place' } };
  commits = 0;
  #place;
  #port;
  #delays;
  #waiting = [];
  #state = 'open';
  #closing;

  /**
   * @param {ModelPlace} place
   * @param port the build's own `assertChange` and its neighbours, and `StoreFault`
   * @param delays `transaction(fire)` stores what has gathered; `reading(take)` reads, and answers; `fault()` may give one
   */
  constructor(place, port, delays = AT_ONCE) {
    this.#place = place;
    this.#port = port;
    this.#delays = delays;
  }

  async commit(changes) {
    for (const change of changes) this.#port.assertChange(change);
    const frozen = changes.map(freeze);
    this.#assertUsable();
    if (frozen.length === 0) return [];
    return new Promise((resolve, reject) => {
      this.#waiting.push({ changes: frozen, resolve, reject });
      if (this.#waiting.length === 1) this.#delays.transaction(() => this.#store());
    });
  }

  #store() {
    const calls = this.#waiting.splice(0);
    const fault = this.#delays.fault?.();
    const answer = this.#delays.answer ?? ((give) => give());
    // Planted: told as stored, and lost.
    if (fault !== undefined && this.#place.ignores.has('durability')) {
      for (const { changes, resolve } of calls)
        answer(() => resolve(changes.map(() => ({ outcome: 'stored' }))));
      return;
    }
    if (fault === undefined || fault === 'ghost') {
      const results = calls.map(({ changes }) => changes.map((change) => this.#place.decide(change, this)));
      this.commits += 1;
      this.#place.commits += 1;
      if (fault === undefined) {
        for (const [index, call] of calls.entries()) answer(() => call.resolve(results[index]));
        this.#closing?.();
        return;
      }
    }
    const fate = fault === 'not_stored' ? 'not_stored' : 'unknown';
    // Poisoned in the turn of the fault: nothing more is stored by it.
    if (fate === 'unknown') this.#state = 'poisoned';
    for (const call of calls) answer(() => call.reject(this.#fault('ERR_STORE_UNAVAILABLE', fate)));
    this.#closing?.();
  }

  async read(tenant, streams) {
    for (const stream of streams) this.#port.assertStream(stream);
    return this.#reading(tenant, () =>
      streams.map((stream) => {
        const row = this.#place.tenant(tenant).streams.get(stream);
        return row && record(stream, row);
      }),
    );
  }

  async latestClaims(tenant, keys) {
    for (const key of keys) this.#port.assertKey(key);
    return this.#reading(tenant, () =>
      keys.map((key) => {
        const claims = this.#place.tenant(tenant).claims.get(key);
        if (claims === undefined) return undefined;
        const sequence = Math.max(...claims.keys());
        return { key, sequence, holder: claims.get(sequence) };
      }),
    );
  }

  async crossRun(tenant, prefixes, limit) {
    for (const prefix of prefixes) this.#port.assertPrefix(prefix);
    this.#port.assertLimit(limit);
    return this.#reading(tenant, () => {
      const { claims, crossRun } = this.#place.tenant(tenant);
      const found = new Set();
      for (const prefix of prefixes) {
        const streams = [
          ...[...claims].filter(([key]) => key.startsWith(prefix)).flatMap(([, held]) => [...held.values()]),
          ...[...crossRun].filter(([key]) => key.startsWith(prefix)).flatMap(([, named]) => [...named]),
        ];
        streams.sort((a, b) => (a < b ? 1 : -1));
        for (const stream of streams) if (found.size < limit) found.add(stream);
      }
      return [...found];
    });
  }

  async history(tenant, stream) {
    this.#port.assertStream(stream);
    return this.#reading(tenant, () => {
      const row = this.#place.tenant(tenant).streams.get(stream);
      return (row?.events ?? []).map(({ version, at, event }) => ({
        stream,
        version,
        recordedAt: at,
        event: JSON.parse(event),
        ...(version === 1 && row.fixed !== undefined ? { fixed: JSON.parse(row.fixed) } : {}),
      }));
    });
  }

  async live(query) {
    this.#port.assertLimit(query.limit);
    return this.#reading(query.tenant, () => {
      const rows = [...this.#place.tenant(query.tenant).streams]
        .filter(([, { live }]) => live !== null && isAsked(live, query))
        .map(([stream, { live }]) => ({ stream, ...live }));
      const compare = (a, b) => (a.order < b.order ? -1 : a.order > b.order ? 1 : 0);
      rows.sort(query.dueBy === undefined ? compare : (a, b) => a.dueAt - b.dueAt || compare(a, b));
      return rows.slice(0, query.limit);
    });
  }

  async streams({ tenant, kind, after, newest = false, limit }) {
    this.#port.assertLimit(limit);
    return this.#reading(tenant, () => {
      const rows = [...this.#place.tenant(tenant).streams]
        .filter(([stream]) => stream.startsWith(`${kind}:`))
        .sort(([a], [b]) => (a < b === newest ? 1 : -1))
        .filter(([stream]) => after === undefined || (newest ? stream < after : stream > after));
      return rows.slice(0, limit).map(([stream, row]) => record(stream, row));
    });
  }

  async documents(tenant, references) {
    for (const { digest } of references) this.#port.assertDigest(digest);
    return this.#reading(tenant, () =>
      references.map(({ owner, digest }) => {
        const found = this.#place.tenant(tenant).documents.get(`${owner}\n${digest}`);
        return found && { ...found, salt: found.salt.slice(), bytes: found.bytes.slice() };
      }),
    );
  }

  async foreignCommits() {
    return this.#reading(undefined, () => this.#place.commits - this.commits);
  }

  async close() {
    if (this.#state === 'closed') return;
    // What was called before is stored first.
    if (this.#waiting.length > 0 && this.#state === 'open') {
      await new Promise((resolve) => {
        this.#closing = resolve;
      });
    }
    this.#state = 'closed';
  }

  #reading(tenant, read) {
    if (tenant !== undefined) this.#port.assertName('tenant', tenant);
    this.#assertUsable();
    return new Promise((resolve, reject) => {
      // What is read is what was there at that moment, however late it is told.
      this.#delays.reading(() => {
        const isDown = this.#delays.readingFault?.() === true;
        if (isDown) return () => reject(this.#fault('ERR_STORE_UNAVAILABLE', 'not_stored'));
        const answer = read();
        return () => resolve(answer);
      });
    });
  }

  #assertUsable() {
    if (this.#state === 'poisoned') throw this.#fault('ERR_STORE_POISONED', 'not_stored');
    if (this.#state === 'closed') throw this.#fault('ERR_STORE_UNAVAILABLE', 'not_stored');
  }

  #fault(code, fate) {
    return new this.#port.StoreFault(code, `The model store says ${code}.`, { fate });
  }
}

function isAsked(live, { queues, stages, dueBy, worker, after }) {
  return (
    (queues === undefined || queues.includes(live.queue)) &&
    (stages === undefined || stages.includes(live.stage)) &&
    (dueBy === undefined || live.dueAt <= dueBy) &&
    (worker === undefined || live.worker === worker) &&
    (after === undefined || live.order > after)
  );
}

function record(stream, { version, state, fixed, markedAt }) {
  return {
    stream,
    version,
    state: JSON.parse(state),
    ...(fixed === undefined ? {} : { fixed: JSON.parse(fixed) }),
    ...(markedAt === undefined ? {} : { markedAt }),
  };
}

/** Nothing of the caller's is kept: what it changes afterwards is not what it asked to have stored. */
function freeze(change) {
  const {
    tenant,
    at,
    writes,
    claims = [],
    requires = [],
    documents = [],
    crossRun = [],
    marks = [],
  } = change;
  return {
    tenant,
    at,
    writes: writes.map(({ stream, expectedVersion, state, events, fixed, live }) => ({
      stream,
      expectedVersion,
      state: JSON.stringify(state),
      events: events.map((event) => JSON.stringify(event)),
      fixed: fixed === undefined ? undefined : JSON.stringify(fixed),
      live: live ? { ...live } : live,
    })),
    claims: claims.map((claim) => ({ ...claim })),
    requires: requires.map((requirement) => ({ ...requirement })),
    documents: documents.map((one) => ({ ...one, salt: one.salt.slice(), bytes: one.bytes.slice() })),
    crossRun: crossRun.map((entry) => ({ ...entry })),
    marks: marks.map((mark) => ({ ...mark })),
  };
}
