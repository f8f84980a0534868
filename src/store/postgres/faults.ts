// What an error of the server or of the connection means, and how a person is told of it.

import pg from 'pg';

/** The five characters that a server answers an error with; `undefined` where no server answered. */
export function sqlStateOf(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

/** The transaction was rolled back by the server, and may stand when it is run anew: conflicts and deadlocks. */
export function isRetriable(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state === '40001' || state === '40P01';
}

/** After this error the connection is of no use: nobody answered, or the server has ended the session. */
export function endsConnection(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError)) return true;
  return error.severity === 'FATAL' || error.severity === 'PANIC' || /^(08|57P)/.test(error.code ?? '');
}

/** Nothing was answered within our own time. */
export class DeadlineOver extends Error {
  override readonly name = 'DeadlineOver';
  constructor(ms: number) {
    super(`the server has not answered within ${ms} ms`);
  }
}

/** The server said beside its answer that the commit may exist on this machine alone, or something as doubtful. */
export class DoubtfulCommit extends Error {
  override readonly name = 'DoubtfulCommit';
}

/** The end of a sentence. The server's own words are used where ours would say less; a password is in neither. */
export function causeOf(error: unknown): string {
  const known = WORDS[sqlStateOf(error) ?? (error as NodeJS.ErrnoException | undefined)?.code ?? ''];
  if (known !== undefined) return known;
  const { errors, message } = error as AggregateError;
  // Of a name with several addresses each one was tried.
  if (message === '' && errors?.[0] !== undefined) return causeOf(errors[0]);
  const sentence = firstLine(message);
  return sqlStateOf(error) === '42501' ? `a right is missing: ${sentence}` : sentence;
}

function firstLine(message: string): string {
  const [line = ''] = message.split('\n');
  return line.replace(/\.$/, '');
}

const WORDS: { readonly [code: string]: string } = {
  ECONNREFUSED: 'nobody listens at that address',
  ENOENT: 'there is no such socket',
  ENOTFOUND: 'there is no host of that name',
  EAI_AGAIN: 'the name of the host cannot be looked up now',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
  ETIMEDOUT: 'the host does not answer',
  ECONNRESET: 'the connection was cut',
  EPIPE: 'the connection was cut',
  '28P01': 'the server does not accept this user with this password',
  '28000': 'the server does not let this user in from here',
  '3D000': 'the server has no database of that name',
  '53300': 'the server has no connection left',
  '55P03': 'another process holds its lock',
  '57P01': 'the server has ended the connection',
  '57P02': 'the server has crashed and starts again',
  '57P03': 'the server is starting or stopping',
  '25006': 'the server is read-only, as a standby is',
};
