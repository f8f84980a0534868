// The shape of terminal.mjs, for tests that are written in TypeScript.

export interface TerminalRan {
  readonly code: number;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Everything that was shown on the terminal itself. */
  readonly screen: string;
}

export function runOnTerminal(
  args: readonly string[],
  answers: readonly string[],
  options?: { readonly env?: NodeJS.ProcessEnv; readonly timeoutMs?: number },
): Promise<TerminalRan>;
