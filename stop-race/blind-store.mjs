// The positive control: a store under which no process hears of a stop, and no commit is held back by one. Everything
// else is as it is; the check before the send is what is switched off.

const STOPS = 'stops:now';

export class BlindStore {
  #store;

  constructor(store) {
    this.#store = store;
  }

  get durability() {
    return this.#store.durability;
  }

  get commits() {
    return this.#store.commits;
  }

  commit(changes) {
    return this.#store.commit(
      changes.map((change) => ({
        ...change,
        ...(change.requires === undefined
          ? {}
          : { requires: change.requires.filter(({ stream }) => stream !== STOPS) }),
      })),
    );
  }

  async read(tenant, streams) {
    const records = await this.#store.read(tenant, streams);
    return records.map((record) => (record?.stream === STOPS ? undefined : record));
  }

  latestClaims(...asked) {
    return this.#store.latestClaims(...asked);
  }

  crossRun(...asked) {
    return this.#store.crossRun(...asked);
  }

  history(...asked) {
    return this.#store.history(...asked);
  }

  live(query) {
    return this.#store.live(query);
  }

  streams(query) {
    return this.#store.streams(query);
  }

  documents(...asked) {
    return this.#store.documents(...asked);
  }

  foreignCommits() {
    return this.#store.foreignCommits();
  }

  close() {
    return this.#store.close();
  }
}
