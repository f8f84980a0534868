// Many waits on one abort signal through one listener.
//
// All sends share the signal of the shutdown. A listener for each would make Node warn of a leak from the
// eleventh on, and costs more than the rest of the bookkeeping of a send.

const waits = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls `tell` when the signal aborts; gives the function that stops watching. For a signal that has not aborted. */
export function watchAbort(signal: AbortSignal, tell: () => void): () => void {
  let tells = waits.get(signal);
  if (tells === undefined) {
    const fresh = new Set<() => void>();
    tells = fresh;
    waits.set(signal, fresh);
    const tellAll = () => {
      for (const each of [...fresh]) each();
    };
    signal.addEventListener('abort', tellAll, { once: true });
  }
  const watching = tells;
  watching.add(tell);
  return () => watching.delete(tell);
}
