/** File, from the checkout → text. */
export function renderDocuments(root: string, lifecycle: object): Map<string, string>;
