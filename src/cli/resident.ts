// `counterfoil resident`: the process that owns the ledger and the servers of all clients of this account. The first
// `counterfoil mcp` starts it; it ends by itself some minutes after the last one, unless something is open.

import { openSync, renameSync, statSync, writeSync } from 'node:fs';
import { type GatewayHost, openSharedLedger, type ProcessLock, takeProcessLock } from '../compose.ts';
import { durationMs } from '../core/contract.ts';
import type { Reached } from '../core/stopping-points.ts';
import { ResidentDoor } from '../resident/door.ts';
import { type FirstWord, line } from '../resident/hello.ts';
import { Hosts } from '../resident/hosts.ts';
import { makePlace, residentPlace } from '../resident/place.ts';
import { dataDirectory } from './data-place.ts';
import { drillPoint } from './drill-point.ts';
import { destinationOf, loadRules, quietConsole, reporter, runOf } from './gateway-setup.ts';
import { printable } from './lines.ts';
import { CommandFault, EXIT } from './output.ts';
import { type ReceiveParts, receive } from './resident-client.ts';
import { packageVersion } from './version.ts';

export interface ResidentOptions {
  readonly data?: string;
  /** What the client that starts it has asked for. */
  readonly config?: string;
  readonly name?: string;
  readonly run?: string;
}

const IDLE_DEFAULT = 'PT5M';
/** How often a server without clients is asked whether something of it is still open, at most. */
const SWEEP_MAX_MS = 5_000;

export async function resident(options: ResidentOptions): Promise<number> {
  const started = await start(options);
  process.stdout.write(line('word' in started ? started : { word: 'listening' }));
  if ('word' in started) return started.word === 'taken' ? EXIT.done : EXIT.usage;
  const { door, hosts, shared, lock, log } = started;
  const why = await untilIdle(started);
  log(`process ${process.pid} ends: ${why}`);
  door.stopListening();
  const hurried = new Promise<void>((resolve) => onSignal(() => resolve()));
  const closed = hosts.close().then(() => door.close());
  await Promise.race([closed, hurried.then(() => hosts.abort())]);
  await closed;
  await shared.close();
  lock.release();
  return EXIT.done;
}

interface Started extends Idling, ReceiveParts {
  readonly lock: ProcessLock;
}

/** What the first client has asked for is checked before anything is made: then nothing was. */
async function start({ data: option, config, name, run }: ResidentOptions): Promise<Started | FirstWord> {
  let idleMs: number;
  let reached: Reached;
  try {
    idleMs = idleTime(process.env['COUNTERFOIL_RESIDENT_IDLE']);
    reached = drillPoint(process.env['COUNTERFOIL_DRILL_CRASH_AT']);
    const first = loadRules(config, () => {}).config?.value;
    runOf(run, first, config);
    if (name !== undefined) destinationOf({ isNamed: true, name }, first, config);
    if (first?.resident === false) return { word: 'alone' };
  } catch (cause) {
    if (!(cause instanceof CommandFault)) throw cause;
    return { word: 'refused', exitCode: cause.exitCode, sentence: cause.message };
  }
  const data = dataDirectory(option);
  const place = residentPlace(data);
  const obstacle = makePlace(place);
  if (obstacle !== undefined) return { word: 'obstacle', reason: obstacle };
  let lock: ProcessLock | undefined;
  try {
    lock = await takeProcessLock(place.lock);
  } catch (cause) {
    return { word: 'obstacle', reason: `${place.lock} cannot be used: ${(cause as Error).message}` };
  }
  if (lock === undefined) return { word: 'taken' };
  quietConsole();
  const log = openLog(place.log);
  const report = reporter(log);
  process.on('uncaughtException', (cause) => {
    log(`an internal fault: ${cause.stack ?? cause.message}`);
    process.exit(EXIT.internal);
  });
  const shared = await openSharedLedger({ data, report });
  const parts = { data, log, shared, reached, hosts: new Hosts<GatewayHost>(report), talks: new Map() };
  let isDraining = false;
  const door = new ResidentDoor({
    place,
    version: packageVersion(),
    receive: (server, talk) => receive(parts, server, talk),
    onOtherVersion: (version) => {
      isDraining = true;
      report(
        `A client of version ${version} has come: this process ends with its last client and leaves what is open to the next.`,
      );
    },
    report,
  });
  await door.listen((mask) => process.umask(mask));
  log(`process ${process.pid} of version ${packageVersion()} serves the clients of ${data}`);
  return { ...parts, door, lock, idleMs, isDraining: () => isDraining };
}

type Log = (text: string) => void;

const LOG_MAX_BYTES = 1024 * 1024;

/** What was logged before stays, up to a length. */
function openLog(file: string): Log {
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > LOG_MAX_BYTES) renameSync(file, `${file}.1`);
  const descriptor = openSync(file, 'a', 0o600);
  return (text) => {
    try {
      writeSync(descriptor, `${new Date().toISOString()} ${text}\n`);
    } catch {
      // A full disk must not end what the disk does not need.
    }
  };
}

let tellSignal: () => void = () => {};

function onSignal(tell: () => void): void {
  tellSignal = tell;
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.removeAllListeners(signal);
    process.on(signal, () => tellSignal());
  }
}

interface Idling {
  readonly door: ResidentDoor;
  readonly hosts: Hosts<GatewayHost>;
  readonly idleMs: number;
  readonly isDraining: () => boolean;
}

/** Resolves with the reason to end. */
function untilIdle({ door, hosts, idleMs, isDraining }: Idling): Promise<string> {
  return new Promise((resolve) => {
    let idleSince: number | undefined;
    const look = async (): Promise<void> => {
      await hosts.sweep();
      if (door.clientCount === 0 && !door.canBeFound) finish('nobody could find it any more');
      if (door.clientCount > 0 || (hosts.size > 0 && !isDraining())) {
        idleSince = undefined;
        return;
      }
      idleSince ??= performance.now();
      const isOver = performance.now() - idleSince >= (isDraining() ? 0 : idleMs);
      if (isOver && door.clientCount === 0) finish('no client is there, and nothing is open');
    };
    const timer = setInterval(() => void look(), Math.max(20, Math.min(SWEEP_MAX_MS, idleMs / 4)));
    const finish = (why: string): void => {
      clearInterval(timer);
      resolve(why);
    };
    onSignal(() => finish('it was told to'));
  });
}

function idleTime(text: string | undefined): number {
  const idleMs = durationMs(text === undefined || text === '' ? IDLE_DEFAULT : text);
  if (idleMs === undefined) {
    throw new CommandFault(
      EXIT.usage,
      `COUNTERFOIL_RESIDENT_IDLE ${printable(JSON.stringify(text))} is no duration such as ${IDLE_DEFAULT}.`,
    );
  }
  return idleMs;
}
