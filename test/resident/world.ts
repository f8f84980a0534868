// A data directory with a resident process, its clients, and a server that keeps its own log.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  CleanUps,
  callsOf,
  type GatewayOptions,
  gatewayArguments,
  isRunning,
  LineProcess,
  logOf,
  operationsIn,
  ownerOf,
  startGateway,
  toolsServer,
  until,
} from '../gateway/processes.ts';

const TOOLS = [
  { name: 'note', inputSchema: { type: 'object' } },
  { name: 'erase', inputSchema: { type: 'object' } },
  { name: 'look', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } },
];
export const CONFIG = `
destination: fixture
tools:
  note: {class: ordinary, repeat: unique}
  erase: {class: irreversible}
`;

/** Short enough for a test; not so short that a resident ends between two clients of one. */
const IDLE = 'PT2S';

export interface WorldOptions {
  readonly plan?: object;
  readonly idle?: string;
  readonly config?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly flags?: readonly string[];
}

export function residentWorld(cleanUps: CleanUps, options: WorldOptions = {}) {
  const { plan = { does: 'answer' }, idle = IDLE, config = CONFIG, flags = [] } = options;
  const folder = cleanUps.folder();
  const data = join(folder, 'data');
  writeFileSync(join(folder, 'tools.json'), JSON.stringify(TOOLS));
  writeFileSync(join(folder, 'plan.json'), JSON.stringify({ note: plan, erase: plan }));
  const env = { COUNTERFOIL_RESIDENT_IDLE: idle, ...options.env };
  const gateway: GatewayOptions = {
    data,
    server: toolsServer(folder, ...flags),
    config,
    env,
    resident: true,
  };
  const servers = (): readonly number[] =>
    logOf(folder).flatMap(({ event, pid }) => (event === 'started' && pid !== undefined ? [pid] : []));
  const log = (): string => {
    const file = join(data, 'resident', 'log');
    return existsSync(file) ? readFileSync(file, 'utf8') : '';
  };
  /** The ids of every resident that was started here. */
  const residents = (): readonly number[] =>
    [...log().matchAll(/process (\d+) of version/g)].map(([, pid]) => Number(pid));
  cleanUps.add(async () => {
    for (const pid of [...residents(), ...servers()]) {
      if (isRunning(pid)) process.kill(pid, 'SIGKILL');
      await until(() => !isRunning(pid), `process ${pid} to end`);
    }
  });
  const owner = ownerOf(data);
  const start = (more: Partial<GatewayOptions> = {}): LineProcess =>
    cleanUps.started(startGateway({ ...gateway, ...more }));
  return {
    folder,
    data,
    env,
    log,
    residents,
    servers,
    start,
    owner,
    arguments: () => gatewayArguments(gateway),
    async client(more: Partial<GatewayOptions> = {}): Promise<LineProcess> {
      const client = start(more);
      await client.initialize();
      return client;
    },
    /** The one resident that runs now. */
    resident(): number {
      const running = residents().filter(isRunning);
      const [pid] = running;
      if (pid === undefined || running.length > 1)
        throw new Error(`${running.length} residents run.\n${log()}`);
      return pid;
    },
    calls: (tool = 'note') => callsOf(folder, tool),
    isOut: (tool = 'note') => until(() => callsOf(folder, tool).length === 1, 'the write to be out'),
    release: () => writeFileSync(join(folder, 'release'), ''),
    operations: () => operationsIn(data),
    ended: (...pids: readonly number[]) =>
      Promise.all(pids.map((pid) => until(() => !isRunning(pid), `process ${pid} to end`))),
  };
}

export type ResidentWorld = ReturnType<typeof residentWorld>;
