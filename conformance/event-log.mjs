// Keeps the events of the streams of one session, so that a client can come back for what it has missed.

import { randomUUID } from 'node:crypto';

export class EventLog {
  /** @type {{ id: string, stream: string, message: object }[]} in the order of their coming */
  #events = [];

  async storeEvent(stream, message) {
    const id = randomUUID();
    this.#events.push({ id, stream, message });
    return id;
  }

  async getStreamIdForEventId(id) {
    return this.#events.find((event) => event.id === id)?.stream;
  }

  async replayEventsAfter(id, { send }) {
    const at = this.#events.findIndex((event) => event.id === id);
    const { stream } = this.#events[at] ?? {};
    for (const event of this.#events.slice(at + 1)) {
      // The first event of a stream only gives it an id, and says nothing.
      if (event.stream === stream && event.message.jsonrpc !== undefined) await send(event.id, event.message);
    }
    return stream;
  }
}
