// `counterfoil blueprint`: what is agreed about each tool, for people who were not there when it was agreed.

import type { Binding } from '../contracts/binding.ts';
import {
  blueprintOf,
  type DestinationBlueprint,
  routeLines,
  type ToolBlueprint,
} from '../contracts/blueprint.ts';
import { findShippedBinding, shippedFiles } from '../contracts/catalogue.ts';
import { type GatewaySetup, loadGatewaySetup } from '../contracts/load.ts';
import { closest, listed } from '../contracts/problem.ts';
import type { Contract } from '../core/contract.ts';
import type { Ledger } from '../engine/ledger.ts';
import { blueprintPage } from './blueprint-page.ts';
import { pausesOf, readConfig } from './contract.ts';
import { withLedger } from './data-directory.ts';
import { printable } from './lines.ts';
import { CommandFault, EXIT, print, printJson } from './output.ts';
import { toType } from './starter.ts';

export interface BlueprintOptions {
  readonly config?: string;
  readonly server?: readonly string[];
  readonly data?: string;
  readonly html?: boolean;
  readonly json?: boolean;
}

/** Of one configuration, of shipped bindings, or of everything that is in force here. */
export async function blueprint(options: BlueprintOptions): Promise<number> {
  if (options.html === true && options.json === true) {
    throw new CommandFault(EXIT.usage, 'One form at a time: --html or --json.');
  }
  const pages = await pagesFor(options);
  if (options.json === true) printJson({ destinations: pages });
  else if (options.html === true) print(blueprintPage(pages));
  else for (const page of pages) for (const line of pageLines(page)) print(line);
  return EXIT.done;
}

const ELSEWHERE = `Of a configuration: ${toType('blueprint --config FILE')}; of a shipped binding: ${toType('blueprint --server NAME')}.`;

interface Shipped {
  readonly binding: Binding;
  readonly contract: Contract;
}

async function pagesFor({
  config,
  data,
  server = [],
}: BlueprintOptions): Promise<readonly DestinationBlueprint[]> {
  const shipped = server.map(shippedServer);
  if (config !== undefined) return [pageOf(readConfig(config).setup, shipped, [])];
  if (shipped.length > 0) return shipped.map((one) => shippedPage(one));
  try {
    return await withLedger(data, pagesInForce);
  } catch (cause) {
    if (!(cause instanceof CommandFault) || cause.exitCode !== EXIT.notFound) throw cause;
    throw new CommandFault(EXIT.notFound, `${cause.message} ${ELSEWHERE}`);
  }
}

function shippedServer(name: string): Shipped {
  const found = findShippedBinding(name);
  if (found !== undefined) return { binding: found.binding.value, contract: found.contract.value };
  const known = shippedFiles('binding').map((file) => file.replace('.binding.yaml', ''));
  const near = closest(name, known);
  const hint = near === undefined ? `shipped are ${listed(known)}` : `did you mean ${near}?`;
  throw new CommandFault(EXIT.notFound, `No binding ${printable(JSON.stringify(name))} is shipped; ${hint}`);
}

function today(): string {
  return new Date().toISOString().slice(0, 10);
}

function shippedPage({ binding, contract }: Shipped): DestinationBlueprint {
  return blueprintOf({
    destination: binding.id,
    contracts: [contract],
    bindings: [binding],
    rules: [],
    pauses: pausesOf(undefined),
    today: today(),
  });
}

function pageOf(
  setup: GatewaySetup,
  shipped: readonly Shipped[],
  rules: Parameters<typeof blueprintOf>[0]['rules'],
): DestinationBlueprint {
  const config = setup.config.value;
  return blueprintOf({
    destination: config.destination,
    contracts: [...setup.contracts.map(({ value }) => value), ...shipped.map(({ contract }) => contract)],
    bindings: [...setup.bindings.map(({ value }) => value), ...shipped.map(({ binding }) => binding)],
    config,
    rules,
    pauses: pausesOf(config),
    today: today(),
  });
}

/** Each configuration in force, and each destination of which a class was confirmed. */
async function pagesInForce(ledger: Ledger): Promise<readonly DestinationBlueprint[]> {
  const rules = (await ledger.rules()).filter(({ revokedAt }) => revokedAt === undefined);
  const policies = await ledger.policies.all();
  const pages = policies.map(({ destination, inForce }) => {
    const setup = loadGatewaySetup(inForce.sources.text, destination, {
      today: today(),
      readText: (name) => {
        const text = inForce.sources.files[name];
        return text === undefined ? { reason: 'it was not kept' } : { text };
      },
    });
    if (!setup.ok) {
      throw new CommandFault(
        EXIT.usage,
        `The configuration of ${printable(destination)} that is in force can no longer be read by this version.`,
      );
    }
    return pageOf(
      setup,
      [],
      rules.filter((rule) => rule.destination === destination),
    );
  });
  const others = [...new Set(rules.map(({ destination }) => destination))].filter(
    (destination) => !policies.some((policy) => policy.destination === destination),
  );
  const ruled = others.map((destination) =>
    blueprintOf({
      destination,
      contracts: [],
      bindings: [],
      rules: rules.filter((rule) => rule.destination === destination),
      pauses: pausesOf(undefined),
      today: today(),
    }),
  );
  if (pages.length + ruled.length > 0) return [...pages, ...ruled];
  throw new CommandFault(EXIT.notFound, 'Nothing is in force here yet.');
}

function pageLines({ destination, mode, reads, tools }: DestinationBlueprint): readonly string[] {
  return [
    `${printable(destination)}, mode ${mode}: ${tools.length} ${tools.length === 1 ? 'kind of write' : 'kinds of writes'}, ${reads.length} reads`,
    ...(reads.length === 0 ? [] : [`  reads, which pass: ${reads.map(printable).join(', ')}`]),
    ...tools.flatMap(toolLines),
    '',
  ];
}

function toolLines(tool: ToolBlueprint): readonly string[] {
  const { afterUnknown, approver, calls, gaps, guards, identity, mayStop, owner, recovery, write } = tool;
  const rows: readonly (readonly [string, readonly string[]])[] = [
    ['write', [write ?? 'no contract describes it']],
    ['the same call', [identity]],
    ['approved by', [approver]],
    ['guard', guards.length === 0 ? ['none'] : guards],
    ['after unknown', afterUnknown],
    ['owner', [owner ?? 'nobody']],
    ['way back', routeLines(recovery)],
    ['may stop', [mayStop.length === 0 ? 'nobody is named' : listed(mayStop)]],
    ['gaps', gaps.length === 0 ? ['none'] : gaps],
  ];
  return [
    `  ${printable(tool.tool)}${calls === undefined ? '' : ` ${printable(calls)}`}: ${tool.class}, by ${tool.classSource}`,
    ...rows.flatMap(([name, lines]) =>
      lines.map((line, index) => `    ${(index === 0 ? name : '').padEnd(14)}${printable(line)}`),
    ),
  ];
}
