// The servers that the resident stands in front of: one host for all clients that ask for the same one in the same
// way, kept after the last of them for as long as work of it is open.

/** What a host must be able to do; `compose` makes it. */
export interface Host {
  /** Whether work is open that the host could still go on with. */
  isOpen(): Promise<boolean>;
  close(): Promise<void>;
  abort(): Promise<void>;
}

export interface HostSpec {
  /** The server as a person knows it: its name and how it is reached. */
  readonly server: string;
  /** All that makes two clients' servers the same, their environments too. */
  readonly key: string;
}

interface Held<Kind extends Host> {
  readonly spec: HostSpec;
  readonly opening: Promise<Kind>;
  clientCount: number;
}

export class Hosts<Kind extends Host> {
  readonly #held = new Map<string, Held<Kind>>();
  readonly #closing = new Set<Promise<void>>();
  readonly #report: (message: string) => void;
  #isSweeping = false;

  constructor(report: (message: string) => void) {
    this.#report = report;
  }

  /** How many servers there are, with clients or without. */
  get size(): number {
    return this.#held.size;
  }

  /** Lends the host of a server to one client until `use` is done. */
  async use(spec: HostSpec, open: () => Promise<Kind>, use: (host: Kind) => Promise<void>): Promise<void> {
    const held = this.#held.get(spec.key) ?? this.#hold(spec, open);
    held.clientCount += 1;
    try {
      await use(await held.opening);
    } finally {
      held.clientCount -= 1;
      await this.sweep();
    }
  }

  #hold(spec: HostSpec, open: () => Promise<Kind>): Held<Kind> {
    const held: Held<Kind> = { spec, opening: open(), clientCount: 0 };
    held.opening.catch(() => this.#held.delete(spec.key));
    this.#held.set(spec.key, held);
    return held;
  }

  /**
   * Ends hosts without clients that have nothing open. Of several for one server, which differ in their clients'
   * environments or in the rules under which they came, the last is enough: it has the newest of both.
   */
  async sweep(): Promise<void> {
    if (this.#isSweeping) return;
    this.#isSweeping = true;
    try {
      const seen = new Set<string>();
      for (const held of [...this.#held.values()].toReversed()) {
        const isSecond = seen.has(held.spec.server);
        seen.add(held.spec.server);
        if (held.clientCount === 0 && (isSecond || !(await this.#isOpen(held)))) this.#end(held);
      }
    } finally {
      this.#isSweeping = false;
    }
  }

  /** A ledger that cannot be read may hold open work. */
  async #isOpen({ opening }: Held<Kind>): Promise<boolean> {
    try {
      return await (await opening).isOpen();
    } catch (cause) {
      this.#report(`Whether work is open could not be read: ${String(cause)}`);
      return true;
    }
  }

  #end(held: Held<Kind>): void {
    // A client may have come while the ledger was asked.
    if (held.clientCount > 0 || this.#held.get(held.spec.key) !== held) return;
    this.#held.delete(held.spec.key);
    const closing: Promise<void> = held.opening
      .then((host) => host.close())
      .catch((cause: unknown) => this.#report(`A server could not be closed: ${String(cause)}`))
      .finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }

  /** Nothing leaves any more; what is out is waited for and recorded. */
  async close(): Promise<void> {
    const hosts = await this.#opened();
    await Promise.allSettled([...hosts.map((host) => host.close()), ...this.#closing]);
  }

  /** The same without the wait. */
  async abort(): Promise<void> {
    const hosts = await this.#opened();
    await Promise.allSettled(hosts.map((host) => host.abort()));
  }

  async #opened(): Promise<readonly Kind[]> {
    const opened = await Promise.allSettled([...this.#held.values()].map(({ opening }) => opening));
    return opened.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  }
}
