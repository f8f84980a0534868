// Where a list that is given in pages goes on, by the header that says so.

/** RFC 8288: `<https://…>; rel="next"`, among other links. */
export function nextLink(header: string | undefined): string | undefined {
  for (const [, url, parameters = ''] of (header ?? '').matchAll(/<([^<>]*)>([^<]*)/g)) {
    if (/;\s*rel\s*=\s*(?:"(?:[^"]*\s)?next(?:\s[^"]*)?"|next(?![\w-]))/i.test(parameters)) return url;
  }
  return undefined;
}
