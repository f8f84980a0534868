// One client of the resident: what it asks for is checked, and its server's host found or made.

import type { Socket } from 'node:net';
import { localPrincipal } from '../access/principals.ts';
import { composeGatewayHost, type GatewayHost, type openSharedLedger } from '../compose.ts';
import { sha256Hex } from '../core/digest.ts';
import type { Reached } from '../core/stopping-points.ts';
import type { ResidentDoorParts, Talk } from '../resident/door.ts';
import type { ServerSpec, Welcome } from '../resident/hello.ts';
import type { Hosts } from '../resident/hosts.ts';
import { localAccount } from './account.ts';
import {
  destinationOf,
  type LoadedRules,
  loadRules,
  reporter,
  rulesInForce,
  runOf,
  settingsOf,
  where,
} from './gateway-setup.ts';
import { listenersOf } from './listeners.ts';
import { reachOf, recordingLine } from './mcp-alone.ts';
import { CommandFault } from './output.ts';
import { packageVersion } from './version.ts';

export interface ReceiveParts {
  readonly data: string;
  readonly log: (text: string) => void;
  readonly shared: Awaited<ReturnType<typeof openSharedLedger>>;
  readonly hosts: Hosts<GatewayHost>;
  /** By server: the logs of its clients, which are told what concerns all of them. */
  readonly talks: Map<string, Set<Talk>>;
  readonly reached: Reached;
}

type Received = Awaited<ReturnType<ResidentDoorParts['receive']>>;

export async function receive(parts: ReceiveParts, server: ServerSpec, talk: Talk): Promise<Received> {
  const tell = (message: string): void => talk(`${message}\n`);
  try {
    return await hosted(parts, server, talk, tell);
  } catch (cause) {
    if (!(cause instanceof CommandFault)) throw cause;
    const refusal: Welcome = {
      served: false,
      alone: false,
      exitCode: cause.exitCode,
      sentence: cause.message,
    };
    return { refusal };
  }
}

/** @throws {CommandFault} where what its owner has written down cannot be used */
async function hosted(
  { data, hosts, log, reached, shared, talks }: ReceiveParts,
  server: ServerSpec,
  talk: Talk,
  tell: (message: string) => void,
): Promise<Received> {
  const given = loadRules(server.config, tell);
  runOf(server.run, given.config?.value, server.config);
  const destination = destinationOf(server, given.config?.value, server.config);
  if (given.config?.value.resident === false) return { refusal: { served: false, alone: true } };
  if (!isAsRead(given, server)) return { refusal: OTHER_TEXT };
  const rules = await rulesInForce({ destination, given }, { data, shared, tell });
  const { bindings, config: { value: config } = {}, contracts, since } = rules;
  const run = server.run ?? config?.run;
  const listeners = listenersOf(data);
  const { command, url, headers, cwd, env } = server;
  const reach = url === undefined ? { ...reachOf(server), cwd, env } : reachOf(server);
  // Rules change while work of a server is open: the host with those that came last is the one that goes on with it.
  const known = JSON.stringify([destination, command ?? url, cwd]);
  const environment = Object.keys(env)
    .sort()
    .map((name) => [name, env[name]]);
  const spec = {
    server: sha256Hex(known),
    key: sha256Hex(JSON.stringify([known, headers, since, config, contracts, bindings, environment])),
  };
  const open = (): Promise<GatewayHost> =>
    composeGatewayHost({
      ...reach,
      data,
      listeners,
      destination,
      rules,
      settings: settingsOf(config),
      where: where(),
      report: reporter((message) => {
        log(`${destination}: ${message}`);
        for (const each of talks.get(spec.key) ?? []) each(`${message}\n`);
      }),
      reached,
      version: packageVersion(),
      shared,
    });
  const requester = localPrincipal(localAccount());
  const serve = (client: Socket): Promise<void> =>
    hosts.use(spec, open, async (host) => {
      tell(recordingLine({ destination, data, config, isRecording: host.isRecording }));
      const listening = talks.get(spec.key) ?? new Set();
      talks.set(spec.key, listening.add(talk));
      try {
        await host.serve({ requester, run, input: client, output: client, stderr: talk });
      } finally {
        listening.delete(talk);
        if (listening.size === 0) talks.delete(spec.key);
      }
    });
  return { run: serve };
}

const OTHER_TEXT: Welcome = {
  served: false,
  alone: true,
  reason: 'the process that serves the clients here reads another text in its configuration',
};

/** A file may be changed as a client starts, and the same path may be another file where the client is confined. */
function isAsRead({ sources }: LoadedRules, { configDigest }: ServerSpec): boolean {
  return sources === undefined || sha256Hex(sources.text) === configDigest;
}
