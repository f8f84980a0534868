// The owner's configuration of one gateway: what is decided by a person, and what can be wrong in it alone.

import { durationMs, type Mode, type RepeatClass } from '../core/contract.ts';
import type { DeclaredClass } from './binding.ts';
import { checkPolicy, type PolicyConfig } from './policy-config.ts';
import { type Finding, listed } from './problem.ts';
import { identityFindings } from './write-facts.ts';

export interface ToolDeclaration {
  readonly class?: DeclaredClass;
  readonly repeat?: RepeatClass;
  readonly identity?: readonly string[];
  readonly target?: { readonly type: string; readonly id: string | readonly string[] };
  /** `contract-id/operation-id`; takes the place of what the binding says. */
  readonly contract_operation?: string;
  /** Who decides on recovery for what this tool writes; takes the place of the configuration's. */
  readonly owner?: string;
  readonly recovery?: RecoveryRoute;
  readonly may_stop?: readonly string[];
}

/** The way back that was agreed before the tool went live, in words, for each situation (D11). */
export interface RecoveryRoute {
  readonly nobody_acted?: string;
  readonly somebody_acted?: string;
  readonly unknown?: string;
}

/** A named person's word that a tool goes live although something is missing. */
export interface Waiver {
  readonly what: 'owner_missing' | 'route_missing' | 'reversal_missing' | 'review_due';
  /** Absent: for every tool. */
  readonly tool?: string;
  readonly by: string;
  readonly on: string;
  readonly because: string;
}

export interface SendingLimits {
  readonly concurrency?: number;
  readonly rate?: { readonly writes: number; readonly per: string };
}

export interface GatewayConfig {
  readonly destination: string;
  /** `guard` when absent. */
  readonly mode?: Mode;
  readonly run?: string;
  /** Files, from the folder of the configuration. */
  readonly contracts?: readonly string[];
  readonly bindings?: readonly string[];
  readonly tools?: { readonly [tool: string]: ToolDeclaration };
  readonly limits?: {
    readonly reply_timeout?: string;
    readonly caller_wait?: string;
    readonly attempts?: number;
    readonly elapsed?: string;
    readonly approval_lifetime?: string;
    /** Ordinary writes of one requester within an hour, before a person is asked whether to go on. */
    readonly writes_per_hour?: number;
  };
  /** How much may be sent there: at once, and within each window of time, by all processes together. */
  readonly sending?: SendingLimits;
  /** How long work of a run may pause and still be the same work; `unbounded`, or a duration. */
  readonly resume_window?: string;
  /** Where a person finds the review of an operation: an address with `{operation}` in it. None when absent. */
  readonly review_url?: string;
  readonly owner?: string;
  readonly recovery?: RecoveryRoute;
  /** Persons or teams who may stop what is sent; for people to read, nobody is kept from stopping by it. */
  readonly may_stop?: readonly string[];
  readonly waivers?: readonly Waiver[];
  /** Rules beside classes and modes: they only ask for more, except that one may take back a question of `strict`. */
  readonly policy?: PolicyConfig;
  /** False: each client has a process of its own, which ends with it. */
  readonly resident?: boolean;
}

/** The declaration of one tool; a tool named like an inherited member has none by itself. */
export function declarationOf(config: GatewayConfig | undefined, tool: string): ToolDeclaration | undefined {
  const { tools } = config ?? {};
  return tools !== undefined && Object.hasOwn(tools, tool) ? tools[tool] : undefined;
}

/** How many ordinary writes of one requester go through in an hour before a person is asked once (D9). */
export const WRITES_PER_HOUR_DEFAULT = 50;

/** Within it an equal call of a `unique` tool in a given run is answered with the earlier operation (D6). */
export const RESUME_WINDOW_DEFAULT = 'PT96H';

/** How long an approval lasts (D9). */
export const APPROVAL_LIFETIME_DEFAULT = 'PT8H';

/** The resume window that holds, in milliseconds; infinite where it is `unbounded`. */
export function resumeWindowMs(config: GatewayConfig | undefined): number {
  const window = config?.resume_window ?? RESUME_WINDOW_DEFAULT;
  return durationMs(window) ?? Number.POSITIVE_INFINITY;
}

/** What the schema cannot say about one configuration. */
export function checkGatewayConfig(config: GatewayConfig): readonly Finding[] {
  return [
    ...Object.entries(config.tools ?? {}).flatMap(([tool, declaration]) =>
      checkDeclaration(tool, declaration),
    ),
    ...checkLimits(config),
    ...checkReviewUrl(config),
    ...(config.policy === undefined ? [] : checkPolicy(config.policy)),
  ];
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** A person says there who they are: not in the clear. */
function checkReviewUrl({ review_url: address }: GatewayConfig): readonly Finding[] {
  if (address === undefined) return [];
  const sentence = (why: string): readonly Finding[] => [
    { path: ['review_url'], sentence: `review_url is ${address}, ${why}` },
  ];
  const example = reviewUrl(address, 'op_1');
  if (!URL.canParse(example)) return sentence('which is no address.');
  const { hostname, protocol } = new URL(example);
  if (protocol === 'https:' || LOOPBACK.test(hostname)) return [];
  return sentence('which is not encrypted; http is allowed for this machine alone, https elsewhere.');
}

/** The address of one operation's review, from the template of a configuration. */
export function reviewUrl(template: string, operation: string): string {
  return template.replace('{operation}', () => encodeURIComponent(operation));
}

function checkDeclaration(tool: string, declaration: ToolDeclaration): readonly Finding[] {
  const path = ['tools', tool];
  const writes = (['repeat', 'identity', 'target', 'contract_operation'] as const).filter(
    (member) => declaration[member] !== undefined,
  );
  const findings: Finding[] = [];
  if (declaration.class === 'read' && writes.length > 0) {
    findings.push({
      path: [...path, 'class'],
      sentence: `${tool} is declared a read, and ${listed(writes)} ${writes.length > 1 ? 'are' : 'is'} given for it, which only a write has.`,
    });
  }
  const { identity, target } = declaration;
  const places = { path: [...path, 'identity'], targetPath: [...path, 'target'] };
  return [...findings, ...identityFindings({ identity, target, name: tool, ...places })];
}

const LIMITS_AT_LEAST = {
  reply_timeout: 'PT1S',
  caller_wait: 'PT1S',
  elapsed: 'PT1S',
  approval_lifetime: 'PT1M',
} as const;

function checkLimits({ limits = {} }: GatewayConfig): readonly Finding[] {
  const findings: Finding[] = [];
  for (const [limit, least] of Object.entries(LIMITS_AT_LEAST) as [keyof typeof LIMITS_AT_LEAST, string][]) {
    const given = limits[limit];
    if (given !== undefined && (durationMs(given) ?? 0) < (durationMs(least) ?? 0)) {
      findings.push({
        path: ['limits', limit],
        sentence: `limits.${limit} is ${given}; at least ${least} is allowed.`,
      });
    }
  }
  const { elapsed, reply_timeout: replyTimeout } = limits;
  const elapsedMs = durationMs(elapsed);
  const replyTimeoutMs = durationMs(replyTimeout);
  if (elapsedMs !== undefined && replyTimeoutMs !== undefined && elapsedMs < replyTimeoutMs) {
    findings.push({
      path: ['limits', 'elapsed'],
      sentence: `limits.elapsed is ${elapsed}, which is shorter than the ${replyTimeout} that limits.reply_timeout gives one attempt.`,
    });
  }
  return findings;
}
