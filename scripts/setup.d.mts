/** What could not be set up, in one sentence that a person can act on. */
export class SetUpError extends Error {}

/** @throws {SetUpError} when no engine loads */
export function loadStore(root: string): Promise<{ readonly name: string; readonly version: string }>;
