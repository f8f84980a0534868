// Which servers the clients of this account start, and what stands in front of each: for `init`, `leave`, `doctor`.

import { homedir } from 'node:os';
import { type ClientFile } from '../clients/client-file.ts';
import type { ServerEntry } from '../clients/entries.ts';
import { type Found, findConfigurations } from '../clients/find.ts';
import { addressText, destinationName, launchText } from '../clients/names.ts';
import { addressFrom, type OwnCommand } from '../clients/own-command.ts';
import { CLIENTS, type ClientId, type Place, type Surroundings } from '../clients/places.ts';
import { closest, listed } from '../contracts/problem.ts';
import { sha256Hex } from '../core/digest.ts';
import { printable } from './lines.ts';
import { CommandFault, EXIT } from './output.ts';

export interface SurveyedServer {
  readonly place: Place;
  readonly file: ClientFile;
  readonly entry: ServerEntry;
  readonly standing: Standing;
}

export type Standing =
  /** It starts us. */
  | { readonly kind: 'ours'; readonly own: OwnCommand; readonly name: string }
  /** It can be guarded, under this name. */
  | { readonly kind: 'open'; readonly name: string; readonly launch: string }
  /** It cannot: a sentence without its subject, which is the server. */
  | { readonly kind: 'cannot'; readonly problem: string };

export interface Survey {
  readonly surroundings: Surroundings;
  readonly servers: readonly SurveyedServer[];
  readonly files: readonly Found[];
}

export function surroundingsHere(): Surroundings {
  return { platform: process.platform, home: homedir(), project: process.cwd(), environment: process.env };
}

export interface Selection {
  readonly client?: readonly string[] | undefined;
  readonly server?: readonly string[] | undefined;
}

/** @param names that are taken, each with the launch that has it; new ones are added */
export async function survey(selection: Selection, names: ReadonlyMap<string, string>): Promise<Survey> {
  const wantedClients = (selection.client ?? []).map(knownClient);
  const surroundings = surroundingsHere();
  const all = await findConfigurations(surroundings);
  const files = all.filter(({ place }) => wantedClients.length === 0 || wantedClients.includes(place.client));
  const taken = new Map([...names, ...ownNames(all)]);
  const servers = files.flatMap((found) =>
    found.readable
      ? found.entries.map(
          (entry): SurveyedServer => ({
            place: found.place,
            file: found.file,
            entry,
            standing: standingOf(entry, taken),
          }),
        )
      : [],
  );
  return { surroundings, files, servers: selected(servers, selection.server ?? []) };
}

/** Names in entries that start us already, with the launch that each stands for. */
function ownNames(files: readonly Found[]): readonly (readonly [string, string])[] {
  const entries = files.flatMap((found) => (found.readable ? found.entries : []));
  return entries.flatMap(({ server, workspace }) => {
    if (server.kind !== 'stdio' || server.own?.name === undefined) return [];
    const { own, launch } = server;
    if (own.inner !== undefined) {
      return [[server.own.name, sha256Hex(launchText({ ...launch, ...own.inner }, workspace))] as const];
    }
    const address = own.address && addressFrom(own.address, (variable) => launch.env[variable]);
    if (address === undefined || 'missing' in address) return [];
    return [[server.own.name, sha256Hex(addressText(address))] as const];
  });
}

function knownClient(name: string): ClientId {
  const found = CLIENTS.find((client) => client === name);
  if (found !== undefined) return found;
  const near = closest(name, CLIENTS);
  throw new CommandFault(
    EXIT.usage,
    `There is no client ${printable(name)} here; ${near === undefined ? '' : `did you mean ${near}? `}--client takes ${listed(CLIENTS, 'or')}.`,
  );
}

function selected(servers: readonly SurveyedServer[], wanted: readonly string[]): readonly SurveyedServer[] {
  const missing = wanted.find((name) => !servers.some(({ entry }) => entry.name === name));
  if (missing !== undefined) {
    throw new CommandFault(
      EXIT.notFound,
      `No configuration that was found names a server ${printable(missing)}. ${servers.length === 0 ? 'There are none.' : `There are: ${[...new Set(servers.map(({ entry }) => printable(entry.name)))].join(', ')}.`}`,
    );
  }
  return wanted.length === 0 ? servers : servers.filter(({ entry }) => wanted.includes(entry.name));
}

function standingOf(entry: ServerEntry, taken: Map<string, string>): Standing {
  const { server, name, workspace } = entry;
  switch (server.kind) {
    case 'unknown':
      return { kind: 'cannot', problem: `cannot be guarded: ${server.problem}` };
    case 'http': {
      const launch = sha256Hex(addressText(server));
      return { kind: 'open', launch, name: destinationName(name, launch, taken) };
    }
    case 'stdio': {
      if (server.own !== undefined) return { kind: 'ours', own: server.own, name: server.own.name ?? name };
      const launch = sha256Hex(launchText(server.launch, workspace));
      return { kind: 'open', launch, name: destinationName(name, launch, taken) };
    }
  }
}
