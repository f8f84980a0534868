// One connection to the server: statements one after the other, each within a time of our own.

import pg from 'pg';
import { DeadlineOver, endsConnection, sqlStateOf } from './faults.ts';

export interface Statement {
  /** Prepared once for each connection under this name, where there is one. */
  readonly name?: string;
  readonly text: string;
  readonly values?: readonly unknown[];
}

/** In the order of the columns. */
export type Row = readonly unknown[];

export interface LineOptions {
  readonly config: pg.ClientConfig;
  /** The longest time for one answer. */
  readonly deadlineMs: number;
}

type Oid = Parameters<typeof pg.types.getTypeParser>[0];

/** Versions and instants are whole numbers that JavaScript holds exactly. */
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: Oid, format: 'text') =>
    oid === pg.types.builtins.INT8
      ? Number
      : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
};

export class Line {
  readonly #client: pg.Client;
  readonly #deadlineMs: number;
  readonly #notices: string[] = [];
  #isLost = false;

  private constructor(client: pg.Client, deadlineMs: number) {
    this.#client = client;
    this.#deadlineMs = deadlineMs;
    // An idle connection that ends is no error of anybody; the next who needs one opens another.
    client.on('error', () => this.lose());
    client.on('end', () => {
      this.#isLost = true;
    });
    client.on('notice', (notice) => this.#notices.push(notice.code ?? ''));
  }

  /** @throws pg's own error, or `DeadlineOver` */
  static async open({ config, deadlineMs }: LineOptions): Promise<Line> {
    const client = new pg.Client({ ...config, types, keepAlive: true, application_name: 'counterfoil' });
    const line = new Line(client, deadlineMs);
    try {
      await line.#within(client.connect(), deadlineMs);
    } catch (error) {
      line.lose();
      throw error;
    }
    return line;
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  /**
   * @param deadlineMs in place of the line's own
   * @throws pg's own error, or `DeadlineOver`; the line is lost after each that leaves it in doubt
   */
  async run(statement: Statement, deadlineMs = this.#deadlineMs): Promise<readonly Row[]> {
    return (await this.#query(statement, deadlineMs)).rows;
  }

  /**
   * COMMIT. `false`: the server says that it has rolled back.
   * @throws what leaves the fate open; the line is lost then, except after an error that the server has answered with
   */
  async commit(): Promise<{ readonly isCommitted: boolean; readonly notices: readonly string[] }> {
    this.#notices.length = 0;
    const { command } = await this.#query({ text: 'COMMIT' }, this.#deadlineMs);
    return { isCommitted: command === 'COMMIT', notices: [...this.#notices] };
  }

  /** Ends a transaction that is to leave nothing. A line that cannot even do that is lost. */
  async rollBack(): Promise<void> {
    if (this.#isLost) return;
    try {
      await this.run({ text: 'ROLLBACK' });
    } catch {
      this.lose();
    }
  }

  /** Cuts the connection, without a word to the server. */
  lose(): void {
    this.#isLost = true;
    const { stream } = (this.#client as unknown as { readonly connection: { readonly stream: Destroyable } })
      .connection;
    stream.destroy();
  }

  async end(): Promise<void> {
    if (this.#isLost) return;
    this.#isLost = true;
    try {
      await this.#within(this.#client.end(), this.#deadlineMs);
    } catch {
      this.lose();
    }
  }

  async #query(statement: Statement, deadlineMs: number): Promise<pg.QueryArrayResult> {
    const { name, text, values = [] } = statement;
    const query: pg.QueryArrayConfig = {
      text,
      values: [...values],
      rowMode: 'array',
      ...(name === undefined ? {} : { name }),
    };
    try {
      return await this.#within(this.#client.query(query), deadlineMs);
    } catch (error) {
      if (endsConnection(error)) this.lose();
      throw error;
    }
  }

  async #within<Result>(answer: Promise<Result>, ms: number): Promise<Result> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(new DeadlineOver(ms));
        this.lose();
      }, ms);
    });
    try {
      return await Promise.race([answer, late]);
    } finally {
      clearTimeout(timer);
      // What the driver says of a connection that was cut by us is no news.
      answer.catch(() => {});
    }
  }
}

interface Destroyable {
  destroy(): void;
}

/** Several connections for readings: as many as are asked at once, up to a limit. */
export class Lines {
  readonly #open: () => Promise<Line>;
  readonly #max: number;
  readonly #idle: Line[] = [];
  readonly #waiting: (() => void)[] = [];
  #count = 0;
  #isEnded = false;

  constructor(open: () => Promise<Line>, max: number) {
    this.#open = open;
    this.#max = max;
  }

  /** A reading that lost its connection, or was rolled back for a conflict, is asked once more on another one. */
  async use<Result>(read: (line: Line) => Promise<Result>): Promise<Result> {
    try {
      return await this.#once(read);
    } catch (error) {
      if (error instanceof DeadlineOver || (!endsConnection(error) && sqlStateOf(error) !== '40001'))
        throw error;
      return this.#once(read);
    }
  }

  /** What is being read is read to its end. */
  async end(): Promise<void> {
    this.#isEnded = true;
    await Promise.all(this.#idle.splice(0).map((line) => line.end()));
  }

  async #once<Result>(read: (line: Line) => Promise<Result>): Promise<Result> {
    while (this.#count >= this.#max) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#count += 1;
    let line: Line | undefined;
    try {
      do line = this.#idle.pop();
      while (line?.isLost === true);
      line ??= await this.#open();
      return await read(line);
    } finally {
      this.#count -= 1;
      if (this.#isEnded) await line?.end();
      else if (line?.isLost === false) this.#idle.push(line);
      this.#waiting.shift()?.();
    }
  }
}
