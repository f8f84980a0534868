// What `doctor` looks at in the configurations of clients: what is not behind us, what of ours cannot start, and
// what passes through us unguarded.

import { existsSync } from 'node:fs';
import { findLeftovers } from '../clients/client-file.ts';
import type { GuardedEntry, Journal } from '../clients/journal.ts';
import type { OwnerRule } from '../engine/ledger.ts';
import { type Check } from './check-machine.ts';
import { isAtAddress, type Look, lookAtAll } from './look.ts';
import { toType } from './starter.ts';
import { type Survey, type SurveyedServer, survey } from './survey.ts';

export interface ClientChecksOptions {
  readonly data: string;
  readonly journal: Journal;
  readonly ownerRules: readonly OwnerRule[];
  readonly timeoutMs: number;
}

const INIT = toType('init');

export async function checkClients(options: ClientChecksOptions): Promise<readonly Check[]> {
  const found = await survey({}, options.journal.names);
  if (found.files.length === 0) {
    return [
      {
        area: 'clients',
        level: 'note',
        found: 'no configuration of an MCP client was found for this account or in this folder',
      },
    ];
  }
  const toStart = found.servers.filter(
    (server) => mayBeStarted(server, options.journal.guarded) || mayBeAsked(server),
  );
  const looks = await lookAtAll(toStart, { ...options, surroundings: found.surroundings });
  return [
    ...unreadableFiles(found),
    ...found.servers.flatMap((server) => checkServer(server, looks.get(server), options)),
    ...lostEntries(found, options.journal.guarded),
    ...checkRules(looks, options.ownerRules),
    ...(await leftovers(found)),
    {
      area: 'clients',
      level: 'note',
      found:
        "not looked at: connectors and extensions of Claude Desktop, plugins of clients, servers that organisations manage, and other projects' folders",
    },
  ];
}

/** Only what is behind us already; of what came with a project, only what `init` has written here. */
function mayBeStarted(
  { standing, entry, place, file }: SurveyedServer,
  guarded: readonly GuardedEntry[],
): boolean {
  if (standing.kind !== 'ours' || entry.isOff) return false;
  if (standing.own.inner === undefined && standing.own.address === undefined) return false;
  return (
    place.scope === 'user' || guarded.some((each) => each.file === file.path && each.after === entry.text)
  );
}

/** One over HTTP that is its reader's own choice: whether it could be behind us at all, only the server can say. */
function mayBeAsked({ standing, entry, place }: SurveyedServer): boolean {
  return standing.kind === 'open' && entry.server.kind === 'http' && place.scope === 'user' && !entry.isOff;
}

function unreadableFiles(found: Survey): readonly Check[] {
  return found.files.flatMap((each): Check[] =>
    each.readable
      ? []
      : [
          {
            area: 'clients',
            level: 'problem',
            found: `${each.path} cannot be used: ${each.problem}`,
            fix: 'What it names is not known. Mend it, and call doctor again.',
          },
        ],
  );
}

function checkServer(
  server: SurveyedServer,
  look: Look | undefined,
  options: ClientChecksOptions,
): readonly Check[] {
  const { entry, file, standing } = server;
  const where = `${file.path}: ${entry.name}`;
  switch (standing.kind) {
    case 'cannot':
      return [
        { area: 'clients', level: 'note', found: `${where} is not behind us, and ${standing.problem}` },
      ];
    case 'open': {
      if (look?.answered === false && look.isBeyondUs === true) {
        return [{ area: 'clients', level: 'note', found: `${where} is not behind us, and ${look.problem}` }];
      }
      const itself = entry.server.kind === 'http' ? 'reaches it' : 'starts it';
      return [
        {
          area: 'clients',
          level: 'note',
          found: `${where} is not behind us: its client ${itself} itself`,
          fix: `${INIT} --server ${entry.name}`,
        },
      ];
    }
    case 'ours':
      return checkOurs(where, server, look, options);
  }
}

function checkOurs(
  where: string,
  { standing, place, entry }: SurveyedServer,
  look: Look | undefined,
  { data }: ClientChecksOptions,
): readonly Check[] {
  if (standing.kind !== 'ours') return [];
  const { own, name } = standing;
  const gone = own.files.find((path) => !existsSync(path));
  if (gone !== undefined) {
    return [
      {
        area: 'clients',
        level: 'problem',
        found: `${where} starts us by ${gone}, which is not there any more: its client has no such server now`,
        fix: `${toType('leave')}, then ${INIT}`,
      },
    ];
  }
  const elsewhere: Check[] =
    own.data === undefined || own.data === data
      ? []
      : [{ area: 'clients', level: 'note', found: `${where} is recorded in ${own.data}, not in ${data}` }];
  if (look === undefined) {
    const not = isAtAddress(entry) ? 'was not asked' : 'was not started';
    const why = place.scope === 'project' ? `, and came with the project: it ${not}` : `, and ${not}`;
    return [...elsewhere, { area: 'clients', level: 'ok', found: `${where} is behind us, as ${name}${why}` }];
  }
  if (!look.answered) {
    return [
      ...elsewhere,
      {
        area: 'clients',
        level: 'problem',
        found: `${where} is behind us, as ${name}, and ${look.problem}`,
        fix: isAtAddress(entry)
          ? `Mend its address or its headers, or let its client reach it itself: ${toType('leave')}.`
          : 'It would not start without us either: mend its own command.',
      },
    ];
  }
  return [
    ...elsewhere,
    { area: 'clients', level: 'ok', found: `${where} is behind us, as ${name}` },
    ...checkTools(name, look),
  ];
}

function checkTools(name: string, look: Look & { readonly answered: true }): readonly Check[] {
  const checks: Check[] = [];
  const hinted = look.tools.filter((tool) => tool.class === 'read' && tool.classSource === 'hint');
  if (hinted.length > 0) {
    checks.push({
      area: 'tools',
      level: 'note',
      found: `${name}: ${counted(hinted.length)} as reads on its own word alone (readOnlyHint): ${namesOf(hinted)}`,
      fix: 'Declare the class of those that are not reads, in a configuration for mcp --config.',
    });
  }
  const unclassified = look.tools.filter((tool) => tool.class === 'unclassified');
  if (unclassified.length > 0) {
    checks.push({
      area: 'tools',
      level: 'note',
      found: `${name}: nobody has said what ${namesOf(unclassified)} ${unclassified.length === 1 ? 'is' : 'are'}; the first call asks`,
    });
  }
  if (look.unguarded.length > 0) {
    checks.push({
      area: 'tools',
      level: 'note',
      found: `${name}: what it offers as ${look.unguarded.join(', ')} passes unguarded and is not recorded`,
    });
  }
  return checks;
}

function counted(tools: number): string {
  return tools === 1 ? '1 tool passes' : `${tools} tools pass`;
}

const NAMES_MAX = 12;

function namesOf(tools: readonly { readonly name: string }[]): string {
  const names = tools.slice(0, NAMES_MAX).map(({ name }) => name);
  return tools.length > NAMES_MAX
    ? `${names.join(', ')} and ${tools.length - NAMES_MAX} more`
    : names.join(', ');
}

/** What `init` has guarded and somebody has changed back since. */
function lostEntries(found: Survey, guarded: readonly GuardedEntry[]): readonly Check[] {
  return guarded.flatMap((each): Check[] => {
    const now = found.servers.find(
      ({ file, entry }) =>
        file.path === each.file && JSON.stringify(entry.path) === JSON.stringify(each.path),
    );
    if (now === undefined || now.standing.kind === 'ours') return [];
    return [
      {
        area: 'clients',
        level: 'problem',
        found: `${each.file}: ${now.entry.name} was guarded by init, and does not start us any more`,
        fix: `${INIT} --server ${now.entry.name}, or ${toType('leave')}`,
      },
    ];
  });
}

/** Classes that were confirmed for tools as they were: where a tool has changed, its next call asks again. */
function checkRules(
  looks: ReadonlyMap<SurveyedServer, Look>,
  ownerRules: readonly OwnerRule[],
): readonly Check[] {
  const checks: Check[] = [];
  const seen = new Set<string>();
  for (const [{ standing }, look] of looks) {
    if (standing.kind !== 'ours' || !look.answered || seen.has(standing.name)) continue;
    seen.add(standing.name);
    for (const rule of ownerRules) {
      if (rule.destination !== standing.name || rule.revokedAt !== undefined) continue;
      const tool = look.tools.find(({ name }) => name === rule.tool);
      if (tool?.digest === rule.toolDigest) continue;
      const what = tool === undefined ? 'is not listed by its server any more' : 'has changed since';
      checks.push({
        area: 'tools',
        level: 'note',
        found: `${rule.destination}/${rule.tool} was confirmed as ${rule.class}, and ${what}: the rule does not count`,
        fix:
          tool === undefined
            ? toType(`policy revoke ${rule.destination}/${rule.tool}`)
            : 'Its next call asks again.',
      });
    }
  }
  return checks;
}

async function leftovers(found: Survey): Promise<readonly Check[]> {
  const checks: Check[] = [];
  for (const each of found.files) {
    if (!each.readable) continue;
    for (const path of await findLeftovers(each.file.target).catch(() => [])) {
      checks.push({
        area: 'clients',
        level: 'note',
        found: `${path} was left half-written by a run of ours that died; nothing reads it`,
        fix: `Delete it; the next change to ${each.path} does, too.`,
      });
    }
  }
  return checks;
}
