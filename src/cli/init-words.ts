// What `init` says: which servers there are and what each can do, the change, and what became of it.

import { unifiedDiff } from '../clients/diff.ts';
import { classTable } from './class-table.ts';
import type { FilePlan, Written } from './guard-files.ts';
import { printable, printableLine } from './lines.ts';
import { isAtAddress, type Look } from './look.ts';
import { print } from './output.ts';
import { toType } from './starter.ts';
import type { Survey, SurveyedServer } from './survey.ts';

export function printSurvey(
  found: Survey,
  looks: ReadonlyMap<SurveyedServer, Look>,
  plans: readonly FilePlan[],
): void {
  for (const each of found.files) {
    const isAskedFor = found.servers.some(({ file }) => each.readable && file === each.file);
    if (each.readable && each.entries.length > 0 && !isAskedFor) continue;
    print(`${each.place.title}  ${printable(each.path)}`);
    if (!each.readable) {
      print(`  It was left as it is: ${printable(each.problem)}.`);
      continue;
    }
    const servers = found.servers.filter(({ file }) => file === each.file);
    if (each.entries.length === 0) print('  It names no server.');
    for (const server of servers) {
      print(`  ${printable(server.entry.name)}  ${standingWords(server, looks.get(server))}`);
      const look = looks.get(server);
      if (look?.answered === true) for (const line of lookLines(look)) print(`      ${line}`);
    }
  }
  for (const { file, change, problem } of plans) {
    print('');
    if (change === undefined) {
      print(`${printable(file.path)} is left as it is: ${printable(problem ?? '')}.`);
      continue;
    }
    const { text: after, edits } = change;
    for (const line of unifiedDiff({ file: file.path, before: file.text, after, edits }))
      print(printableLine(line));
  }
  if (plans.some(({ change }) => change !== undefined)) {
    print('');
    print(
      'Mode: guard. Reads pass; writes are recorded before they are sent; what is irreversible waits for a person.',
    );
    print('Values that may be secrets are not shown (•••). They stay in the file as they are.');
  }
}

function standingWords({ entry, standing, place }: SurveyedServer, look: Look | undefined): string {
  switch (standing.kind) {
    case 'ours':
      return `is guarded already, as ${printable(standing.name)}`;
    case 'cannot':
      return printable(standing.problem);
    case 'open': {
      const as = `as ${standing.name}`;
      if (look?.answered === true) return `is to be guarded ${as}`;
      if (look !== undefined) {
        const allTheSame = look.isBeyondUs === true ? '' : '; --server takes it all the same';
        return `${printable(look.problem)}. It is left as it is${allTheSame}`;
      }
      const verb = isAtAddress(entry) ? 'ask' : 'start';
      if (entry.isOff)
        return `is switched off in its client, and was not ${verb}ed; --server takes it all the same`;
      return place.scope === 'project'
        ? `comes with the project, and was not ${verb}ed; it is left as it is. --yes ${verb}s it`
        : `was not ${verb}ed`;
    }
  }
}

function lookLines(look: Look & { readonly answered: true }): readonly string[] {
  const { identity, tools, unguarded } = look;
  return [
    ...(identity === undefined ? [] : [`calls itself ${printable(`${identity.name} ${identity.version}`)}`]),
    ...classTable(tools),
    ...(unguarded.length === 0 ? [] : [`passes unguarded: ${unguarded.join(', ')}`]),
  ];
}

export function printEnd(
  plans: readonly FilePlan[],
  written: readonly Written[],
  {
    isWriting,
    isAgreed,
    hints,
  }: { readonly isWriting: boolean; readonly isAgreed: boolean; readonly hints: readonly string[] },
): void {
  print('');
  if (!isWriting) print('Nothing is to be written.');
  else if (!isAgreed) print('Nothing was written.');
  for (const each of written) {
    const path = printable(each.plan.file.path);
    if (each.isWritten) {
      const names = each.plan.servers.map(({ entry }) => printable(entry.name));
      print(`${path} is written: ${names.join(', ')}. As it was, it is kept in ${printable(each.backup)}`);
    } else print(`${path} was not written: ${printable(each.problem)}.`);
  }
  if (!written.some(({ isWritten }) => isWritten)) return;
  print(restartWords(plans.flatMap(({ servers }) => servers.map(({ place }) => place.title))));
  if (plans.some(({ servers }) => servers.some(({ place }) => place.scope === 'project'))) {
    print(
      'A file of a project may be shared with others, who have us elsewhere: init --via npx writes it for all.',
    );
  }
  print(`What waits for a person: ${toType('queue')}. To take all of this back: ${toType('leave')}`);
  for (const hint of hints) print(hint);
}

/** A client reads its file when it starts its servers. */
export function restartWords(titles: readonly string[]): string {
  return `Restart what has these servers open, or it goes on as before: ${[...new Set(titles)].map(printable).join('; ')}.`;
}

export function asJson(
  found: Survey,
  looks: ReadonlyMap<SurveyedServer, Look>,
  plans: readonly FilePlan[],
  written: readonly Written[],
  isDryRun: boolean,
): object {
  return {
    mode: 'guard',
    dry_run: isDryRun,
    files: found.files.map((each) => ({
      client: each.place.client,
      scope: each.place.scope,
      path: each.path,
      problem: each.readable ? null : each.problem,
      servers: found.servers
        .filter(({ file }) => each.readable && file === each.file)
        .map((server) => serverJson(server, looks.get(server))),
    })),
    changes: plans.map((plan) => {
      const { file, servers, change, problem } = plan;
      const result = written.find((each) => each.plan === plan);
      return {
        path: file.path,
        servers: servers.map(({ entry }) => entry.name),
        diff:
          change === undefined
            ? []
            : unifiedDiff({ file: file.path, before: file.text, after: change.text, edits: change.edits }),
        written: result?.isWritten === true,
        backup: result?.isWritten === true ? result.backup : null,
        problem: result?.isWritten === false ? result.problem : (problem ?? null),
      };
    }),
  };
}

function serverJson({ entry, standing }: SurveyedServer, look: Look | undefined): object {
  return {
    name: entry.name,
    standing: standing.kind,
    destination: standing.kind === 'cannot' ? null : standing.name,
    problem: standing.kind === 'cannot' ? standing.problem : look?.answered === false ? look.problem : null,
    identity: look?.answered === true ? (look.identity ?? null) : null,
    tools:
      look?.answered === true
        ? look.tools.map((tool) => ({ name: tool.name, class: tool.class, source: tool.classSource }))
        : null,
    unguarded: look?.answered === true ? look.unguarded : null,
  };
}
