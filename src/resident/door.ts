// The resident's end: listens where pipes look for it, and brings together the two connections of each client.

import { chmodSync, lstatSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { type Hello, line, readHello, readLine, type ServerSpec, type Welcome } from './hello.ts';
import type { ResidentPlace } from './place.ts';

/** Writes to the client's log. Nothing comes of it where the client is gone. */
export type Talk = (text: string | Buffer) => void;

export interface ResidentDoorParts {
  readonly place: ResidentPlace;
  readonly version: string;
  /** Decides about a client before any byte of it is read; `run` serves it then, until it is gone. */
  readonly receive: (
    server: ServerSpec,
    talk: Talk,
  ) => Promise<{ readonly refusal: Welcome } | { readonly run: (client: Socket) => Promise<void> }>;
  /** A pipe of another version has come: whoever ends soon makes room for it. */
  readonly onOtherVersion: (version: string) => void;
  readonly report: (message: string) => void;
}

/** A client that does not read its log must not make this process grow: what is said then is lost. */
const TALK_MAX_BYTES = 1024 * 1024;
/** What was answered last is read within moments; a client that reads nothing is not waited for. */
const LAST_ANSWERS_MS = 1_000;

export class ResidentDoor {
  readonly #parts: ResidentDoorParts;
  readonly #server: Server;
  readonly #talks = new Map<string, Socket>();
  readonly #sockets = new Set<Socket>();
  readonly #running = new Set<Promise<void>>();
  #clientCount = 0;
  #isClosing = false;
  #inode: number | undefined;
  onIdle: () => void = () => {};

  constructor(parts: ResidentDoorParts) {
    this.#parts = parts;
    this.#server = createServer(
      { allowHalfOpen: true, pauseOnConnect: false },
      (socket) => void this.#meet(socket),
    );
  }

  /** Clients that are there now, or about to be. */
  get clientCount(): number {
    return this.#clientCount;
  }

  /** Only for who holds the lock: what a killed resident has left is put away. */
  async listen(umask: (mask: number) => number): Promise<void> {
    const { socket } = this.#parts.place;
    const isFile = !socket.startsWith('\\\\');
    if (isFile) rmSync(socket, { force: true });
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      // The socket is made within this call; nobody else may connect to it for a moment.
      const before = umask(0o177);
      try {
        this.#server.listen(socket, () => {
          this.#server.off('error', reject);
          resolve();
        });
      } finally {
        umask(before);
      }
    });
    if (!isFile) return;
    chmodSync(socket, 0o600);
    this.#inode = lstatSync(socket).ino;
  }

  /** False once the socket has gone from where pipes look for it, as when somebody has removed the data directory. */
  get canBeFound(): boolean {
    const { socket } = this.#parts.place;
    try {
      return this.#inode === undefined || lstatSync(socket).ino === this.#inode;
    } catch {
      return false;
    }
  }

  /** Takes no more clients; those who come now start another resident. */
  stopListening(): void {
    this.#isClosing = true;
    this.#server.close();
  }

  /** Ends every client that is there, once it has read its answers, and waits for what serves them. */
  async close(): Promise<void> {
    this.stopListening();
    for (const socket of this.#sockets) {
      socket.end();
      setTimeout(() => socket.destroy(), LAST_ANSWERS_MS).unref();
    }
    await Promise.allSettled([...this.#running]);
  }

  async #meet(socket: Socket): Promise<void> {
    this.#sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => this.#sockets.delete(socket));
    if (this.#isClosing) {
      socket.destroy();
      return;
    }
    const text = await readLine(socket);
    const hello = text === undefined ? undefined : readHello(text);
    if (hello === undefined) {
      socket.destroy();
      return;
    }
    if (hello.version !== this.#parts.version) {
      this.#parts.onOtherVersion(hello.version);
      const reason = `the process that serves the clients here is of version ${this.#parts.version}, and this is ${hello.version}`;
      refuse(socket, { served: false, alone: true, reason });
    } else if (hello.carries === 'unclear') {
      refuse(socket, { served: false, alone: true, reason: 'it does not understand what it is asked' });
    } else if (hello.carries === 'talk') this.#addTalk(socket, hello.session);
    else await this.#serve(socket, hello);
  }

  #addTalk(socket: Socket, session: string): void {
    this.#talks.set(session, socket);
    socket.once('close', () => this.#talks.delete(session));
    // Nothing comes on it; read, so that its end is noticed.
    socket.resume();
    socket.write(line({ served: true }));
  }

  async #serve(socket: Socket, { session, server }: Extract<Hello, { carries: 'client' }>): Promise<void> {
    this.#clientCount += 1;
    const talkSocket = this.#talks.get(session);
    const talk = (text: string | Buffer): void => {
      if (talkSocket?.writable === true && talkSocket.writableLength < TALK_MAX_BYTES) talkSocket.write(text);
    };
    const running = this.#run(socket, server, talk)
      .catch((cause: unknown) => this.#parts.report(`A client could not be served: ${String(cause)}`))
      .finally(() => {
        talkSocket?.end();
        socket.end();
        this.#running.delete(running);
        this.#clientCount -= 1;
        if (this.#clientCount === 0) this.onIdle();
      });
    this.#running.add(running);
    await running;
  }

  async #run(socket: Socket, server: ServerSpec, talk: Talk): Promise<void> {
    const received = await this.#parts.receive(server, talk);
    if ('refusal' in received) {
      refuse(socket, received.refusal);
      return;
    }
    socket.write(line({ served: true }));
    await received.run(socket);
  }
}

function refuse(socket: Socket, welcome: Welcome): void {
  socket.end(line(welcome));
}
