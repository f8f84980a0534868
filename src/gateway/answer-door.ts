// What an answer needs to know of the gateway that gives it: the helper tool's name, where a person can look, and what
// the tool says that it gives.

import type { AnswerDoor } from './answer-frame.ts';
import type { SchemaChecks } from './schema-checks.ts';
import type { ListedTool } from './tool-list.ts';
import type { GuardedServer } from './upstream.ts';

export interface AnswerDoorParts {
  readonly server: GuardedServer;
  readonly where: string;
  readonly schemas: SchemaChecks;
}

/** @param tool as it is listed now; absent where its server is away: what it gave before is not judged then */
export function answerDoor(
  { server, where, schemas }: AnswerDoorParts,
  tool: ListedTool | undefined,
): AnswerDoor {
  return {
    helperTool: server.tools.helperName,
    where,
    fits: async (structured) => {
      if (tool?.outputSchema === undefined) return true;
      if (structured === undefined) return false;
      const what = `the results of ${tool.name}`;
      return (await schemas.problem(tool.outputSchema, structured, what)) === undefined;
    },
  };
}
