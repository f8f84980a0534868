// Differences between the run without us and the run through us that are meant, each with its reason. The suite itself
// counts none of them against a server.

const ONE_ANSWER =
  'where a server answers in one piece, so does the gateway, in JSON; what came on its stream before is handed on';

/** @type {readonly { generation: string, scenario: string, check: string, through: string, because: string }[]} */
export const AGREED = [
  {
    generation: '2025-11-25',
    scenario: 'server-sse-multiple-streams',
    check: 'server-sse-streams-functional',
    through: 'INFO',
    because: ONE_ANSWER,
  },
  ...['server-sse-priming-event', 'server-sse-retry-field', 'server-sse-disconnect-resume'].map((check) => ({
    generation: '2025-11-25',
    scenario: 'server-sse-polling',
    check,
    through: 'missing',
    because: ONE_ANSWER,
  })),
];
