// Loading contracts, bindings and configurations: text in, a checked value or the sentences that say why not.

import type { JsonValue } from '../core/canonical.ts';
import type { Contract } from '../core/contract.ts';
import { type Binding, checkBinding } from './binding.ts';
import { checkContract, reviewNotes } from './check-contract.ts';
import { checkTogether, type Loaded } from './check-together.ts';
import { placed, readDocument, type SourceText } from './document.ts';
import { checkGatewayConfig, type GatewayConfig } from './gateway-config.ts';
import {
  asGatewayConfig,
  checkHttpDestination,
  checkWithContract,
  type HttpDestinationConfig,
} from './http-destination-config.ts';
import { checkNotifyConfig, type NotifyConfig } from './notify-config.ts';
import { type Finding, type Path, type Problem } from './problem.ts';
import { checkServeConfig, type ServeConfig } from './serve-config.ts';
import { type SchemaName, validate } from './validate.ts';

export interface Refused {
  readonly ok: false;
  readonly problems: readonly Problem[];
}

export interface LoadedContract {
  readonly ok: true;
  readonly contract: Contract;
  /** What is told although nothing is refused: a review that is overdue. */
  readonly notes: readonly Problem[];
  readonly source: SourceText;
}

export interface LoadedBinding {
  readonly ok: true;
  readonly binding: Binding;
  readonly source: SourceText;
}

export interface LoadedConfig {
  readonly ok: true;
  readonly config: GatewayConfig;
  readonly source: SourceText;
}

/** @param options.today a day such as 2026-11-30, with which the day of the next review is compared. */
export function loadContract(
  text: string,
  fileName: string,
  options: { readonly today?: string } = {},
): LoadedContract | Refused {
  const read = load<Contract>(text, fileName, 'contract', (contract) => checkContract(contract));
  if (!read.ok) return read;
  // A file without a revision is the first of its name.
  const contract: Contract = { ...read.value, revision: read.value.revision ?? 1 };
  const notes = options.today === undefined ? [] : placed(reviewNotes(contract, options.today), read.source);
  return { ok: true, contract, notes, source: read.source };
}

export function loadBinding(text: string, fileName: string): LoadedBinding | Refused {
  const read = load<Binding>(text, fileName, 'binding', checkBinding);
  return read.ok ? { ok: true, binding: read.value, source: read.source } : read;
}

/** The configuration by itself; `loadGatewaySetup` reads the files that it names as well. */
export function loadGatewayConfig(text: string, fileName: string): LoadedConfig | Refused {
  const read = load<GatewayConfig>(text, fileName, 'gateway-config', checkGatewayConfig);
  return read.ok ? { ok: true, config: read.value, source: read.source } : read;
}

export interface LoadedServeConfig {
  readonly ok: true;
  readonly config: ServeConfig;
}

/** The configuration of `counterfoil serve` by itself; the files that it names are not read. */
export function loadServeConfig(text: string, fileName: string): LoadedServeConfig | Refused {
  const read = load<ServeConfig>(text, fileName, 'serve-config', checkServeConfig);
  return read.ok ? { ok: true, config: read.value } : read;
}

/** Who is told, by the file that says so. */
export function loadNotifyConfig(
  text: string,
  fileName: string,
): { readonly ok: true; readonly config: NotifyConfig } | Refused {
  const read = load<NotifyConfig>(text, fileName, 'notify-config', checkNotifyConfig);
  return read.ok ? { ok: true, config: read.value } : read;
}

export interface LoadedHttpDestination {
  readonly ok: true;
  readonly config: HttpDestinationConfig;
  readonly source: SourceText;
  readonly contractSource: SourceText;
  readonly contract: Contract;
  readonly notes: readonly Problem[];
}

/** The configuration of a destination over HTTP with the contract that it names, checked each and together. */
export function loadHttpDestination(
  text: string,
  fileName: string,
  options: { readonly readText: ReadText; readonly today?: string },
): LoadedHttpDestination | Refused {
  const read = load<HttpDestinationConfig>(text, fileName, 'http-destination', checkHttpDestination);
  if (!read.ok) return read;
  const { source, value: config } = read;
  const opened = options.readText(config.contract);
  if ('reason' in opened) {
    const sentence = `The file ${config.contract} cannot be read: ${opened.reason}.`;
    return { ok: false, problems: placed([{ path: ['contract'], sentence }], source) };
  }
  const loaded = loadContract(opened.text, config.contract, options);
  if (!loaded.ok) return loaded;
  const problems = placed(checkWithContract(config, loaded.contract), source);
  if (problems.length > 0) return { ok: false, problems: inOrder(problems) };
  const { contract, notes, source: contractSource } = loaded;
  return { ok: true, config, contract, notes, source, contractSource };
}

function load<Value>(
  text: string,
  file: string,
  schema: SchemaName,
  check: (value: Value) => readonly Finding[],
): { readonly ok: true; readonly value: Value; readonly source: SourceText } | Refused {
  const read = readDocument(text, file);
  if (!read.ok) return read;
  // The further checks read members whose shapes the schema has established.
  let findings = validate(schema, read.value);
  if (findings.length === 0) findings = check(read.value as JsonValue & Value);
  if (findings.length > 0) return { ok: false, problems: inOrder(placed(findings, read.source)) };
  return { ok: true, value: read.value as JsonValue & Value, source: read.source };
}

function inOrder(problems: readonly Problem[]): readonly Problem[] {
  return problems.toSorted((a, b) => a.line - b.line || a.column - b.column);
}

/** A file's text, or why it cannot be read. */
export type ReadText = (file: string) => { readonly text: string } | { readonly reason: string };

export interface GatewaySetup {
  readonly ok: true;
  readonly config: Loaded<GatewayConfig>;
  readonly contracts: readonly Loaded<Contract>[];
  readonly bindings: readonly Loaded<Binding>[];
  readonly notes: readonly Problem[];
}

/**
 * A configuration with the contracts and bindings that it names, checked each and against each other.
 * `readText` is given the names as they are written there; it knows the folder of the configuration.
 */
export function loadGatewaySetup(
  text: string,
  fileName: string,
  options: { readonly readText: ReadText; readonly today?: string },
): GatewaySetup | Refused {
  const read = loadGatewayConfig(text, fileName);
  if (!read.ok) return read;
  const { config, source } = read;
  const problems: Problem[] = [];
  const notes: Problem[] = [];
  const open = (file: string, path: Path): string | undefined => {
    const opened = options.readText(file);
    if ('text' in opened) return opened.text;
    problems.push(
      ...placed([{ path, sentence: `The file ${file} cannot be read: ${opened.reason}.` }], source),
    );
    return undefined;
  };
  const contracts = (config.contracts ?? []).flatMap((file, index): Loaded<Contract>[] => {
    const opened = open(file, ['contracts', index]);
    if (opened === undefined) return [];
    const loaded = loadContract(opened, file, options);
    if (loaded.ok) notes.push(...loaded.notes);
    else problems.push(...loaded.problems);
    return loaded.ok ? [{ value: loaded.contract, source: loaded.source }] : [];
  });
  const bindings = (config.bindings ?? []).flatMap((file, index): Loaded<Binding>[] => {
    const opened = open(file, ['bindings', index]);
    if (opened === undefined) return [];
    const loaded = loadBinding(opened, file);
    if (!loaded.ok) problems.push(...loaded.problems);
    return loaded.ok ? [{ value: loaded.binding, source: loaded.source }] : [];
  });
  const setup = { config: { value: config, source }, contracts, bindings };
  // What a file that was refused would have said is not known, so that nothing is compared with it.
  if (problems.length === 0) problems.push(...checkTogether(setup));
  return problems.length > 0 ? { ok: false, problems } : { ok: true, ...setup, notes };
}

/** A configuration of either kind, of one server or of one destination over HTTP, as what its owner decides. */
export function loadOwnersFile(
  text: string,
  fileName: string,
  options: { readonly readText: ReadText; readonly today?: string },
): GatewaySetup | Refused {
  const read = readDocument(text, fileName);
  const isHttp = read.ok && typeof read.value === 'object' && read.value !== null && 'url' in read.value;
  if (!isHttp) return loadGatewaySetup(text, fileName, options);
  const loaded = loadHttpDestination(text, fileName, options);
  if (!loaded.ok) return loaded;
  const { config, contract, contractSource, notes, source } = loaded;
  return {
    ok: true,
    config: { value: { ...asGatewayConfig(config, contract), contracts: [config.contract] }, source },
    contracts: [{ value: contract, source: contractSource }],
    bindings: [],
    notes,
  };
}
