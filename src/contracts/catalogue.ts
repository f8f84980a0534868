// The shipped contracts and bindings: data beside this file, found by what a server calls itself.
//
// They are checked by the tests of this package and not again at every start; only the one that is asked for is
// parsed.

import { readdirSync, readFileSync } from 'node:fs';
import type { Contract } from '../core/contract.ts';
import { type Binding, isForServer } from './binding.ts';
import type { Loaded } from './check-together.ts';
import { readDocument } from './document.ts';

export interface ShippedFacts {
  readonly binding: Loaded<Binding>;
  readonly contract: Loaded<Contract>;
}

/** What a server calls itself in the handshake; its own word for what it is. */
export interface ServerInfo {
  readonly name: string;
  readonly version: string;
}

const FOLDER = new URL('./catalogue/', import.meta.url);
const found = new Map<string, ShippedFacts | undefined>();

/**
 * The shipped binding for a server and the contract that it names; `undefined` where none is shipped for it. The
 * same objects are given each time.
 */
export function findShippedFacts(serverInfo: ServerInfo): ShippedFacts | undefined {
  const key = JSON.stringify([serverInfo.name, serverInfo.version]);
  if (!found.has(key)) found.set(key, find(serverInfo));
  return found.get(key);
}

function find(serverInfo: ServerInfo): ShippedFacts | undefined {
  for (const file of shippedFiles('binding')) {
    const text = readShipped(file);
    // Parsing takes milliseconds, and a file that does not hold the name is for another server.
    if (!text.includes(serverInfo.name)) continue;
    const binding = parse<Binding>(file, text);
    if (!isForServer(binding.value, serverInfo)) continue;
    const contractFile = `${binding.value.contract}.contract.yaml`;
    return { binding, contract: parse<Contract>(contractFile, readShipped(contractFile)) };
  }
  return undefined;
}

/** A shipped binding by its id, with the contract that it names. */
export function findShippedBinding(id: string): ShippedFacts | undefined {
  const file = `${id}.binding.yaml`;
  if (!shippedFiles('binding').includes(file)) return undefined;
  const binding = parse<Binding>(file, readShipped(file));
  const contractFile = `${binding.value.contract}.contract.yaml`;
  return { binding, contract: parse<Contract>(contractFile, readShipped(contractFile)) };
}

/** Names of the shipped files of one kind; a contract's file is named after its id. */
export function shippedFiles(kind: 'binding' | 'contract'): readonly string[] {
  return readdirSync(FOLDER)
    .filter((file) => file.endsWith(`.${kind}.yaml`))
    .toSorted();
}

/** The text of a shipped file, to show or to check it. */
export function readShipped(file: string): string {
  return readFileSync(new URL(file, FOLDER), 'utf8');
}

function parse<Value>(file: string, text: string): Loaded<Value> {
  const read = readDocument(text, file);
  if (!read.ok) throw new Error(`Assertion: the shipped file ${file} can be read.`);
  return { value: read.value as unknown as Value, source: read.source };
}
