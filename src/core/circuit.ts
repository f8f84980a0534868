// The circuit of a destination that does not answer: while it is open nothing is sent there and nothing is looked up,
// but for one try at a time, whose answer closes it (D8). The states are values; when they change is decided here.

/** `failures` counts those in a row when it opened, and failed tries since. Instants in ms since the epoch. */
export interface Circuit {
  readonly standing: 'closed' | 'open';
  readonly since: number;
  readonly failures: number;
  /** Open: when it may be tried again. */
  readonly tryAt: number;
  /** Open: who tries now, and until when nobody else does. */
  readonly trying?: { readonly worker: string; readonly until: number };
  /** Who closed it, where a person did. */
  readonly by?: string;
}

export const CLOSED_CIRCUIT: Circuit = { standing: 'closed', since: 0, failures: 0, tryAt: 0 };

/** So many in a row, of one process, open it: one lost reply is no outage. */
export const FAILURES_MAX = 5;

const PAUSES_MS = [1_000, 2_000, 5_000, 10_000, 30_000];
/** A try that has not ended by then has been lost with its process. */
const TRY_MAX_MS = 60_000;

export function opened(circuit: Circuit, at: number): Circuit {
  if (circuit.standing === 'open') return circuit;
  return { standing: 'open', since: at, failures: FAILURES_MAX, tryAt: at + pauseMs(0) };
}

export function closed(circuit: Circuit, at: number, by?: string): Circuit {
  if (circuit.standing === 'closed') return circuit;
  return { ...CLOSED_CIRCUIT, since: at, ...(by === undefined ? {} : { by }) };
}

/** The one that tries now; `undefined` where it is too early, or somebody else does. */
export function tried(circuit: Circuit, worker: string, at: number): Circuit | undefined {
  if (circuit.standing === 'closed' || at < circuit.tryAt) return undefined;
  if (circuit.trying !== undefined && at < circuit.trying.until) return undefined;
  return { ...circuit, trying: { worker, until: at + TRY_MAX_MS } };
}

/** A try went as those before it. */
export function failedAgain(circuit: Circuit, at: number): Circuit {
  const { trying: _over, ...rest } = circuit;
  const failures = circuit.failures + 1;
  return { ...rest, failures, tryAt: at + pauseMs(failures - FAILURES_MAX) };
}

function pauseMs(failedTries: number): number {
  return PAUSES_MS[Math.min(failedTries, PAUSES_MS.length - 1)] ?? 0;
}
