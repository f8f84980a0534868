// Settings of a server that may be waived, by name, by somebody who knows why.

export const WAIVABLE = ['fsync', 'full_page_writes', 'synchronous_commit'] as const;
export type Waivable = (typeof WAIVABLE)[number];
