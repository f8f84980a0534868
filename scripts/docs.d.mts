/** File, from the checkout → text. */
export function renderDocuments(root: string, lifecycle: object, answerTable: object): Map<string, string>;
