// What must not be printed: values of a configuration that may be secrets. Who is in doubt masks.
//
// Names are shown, and what says which program is started; the values of an environment, of headers, of inputs,
// addresses beyond their host, and whatever in the arguments looks like a key are not.

import { type JSONPath, visit } from 'jsonc-parser';
import type { ServerEntry } from './entries.ts';
import { URL_VARIABLE } from './own-command.ts';

export const MASK = '•••';

const SENSITIVE =
  /key|token|secret|passw|pwd|auth|credential|cookie|bearer|dsn|connection|signature|private/i;
/** Beginnings of keys that their makers have published, so that scanners find them. */
const KEY_START =
  /^(sk|pk|rk|ghp|gho|ghu|ghs|ghr|github_pat|glpat|xox[a-z]|AKIA|ASIA|AIza|eyJ|npm|pypi|shp[a-z]{2}|hf|SG)[-_.A-Za-z0-9]{6,}/;
const LONG_WORD = /[A-Za-z0-9_+-]{20,}/g;

/** Arguments as they may be shown, in their order. */
export function maskArguments(args: readonly string[]): readonly string[] {
  return args.map((argument, index) => {
    const before = args[index - 1] ?? '';
    const isValueOf = /^--?[A-Za-z]/.test(before) && !before.includes('=') && !argument.startsWith('-');
    if (isValueOf && (SENSITIVE.test(before) || /^(-H|--header)$/.test(before))) return maskWhole(argument);
    return maskArgument(argument);
  });
}

function maskArgument(argument: string): string {
  const assigned = /^(-{0,2}[A-Za-z_][\w.-]*=)(.*)$/s.exec(argument);
  if (assigned !== null) {
    const [, name = '', value = ''] = assigned;
    const isVariable = !name.startsWith('-');
    return name + (isVariable || SENSITIVE.test(name) ? maskWhole(value) : maskArgument(value));
  }
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(argument)) return shownAddress(argument);
  return maskWords(argument);
}

/** A reference to a variable is no secret. */
function maskWhole(text: string): string {
  return /^\$\{[^}]*\}$/.test(text) || text === '' ? text : MASK;
}

/** Masks what looks like a key within a text. */
export function maskWords(text: string): string {
  if (KEY_START.test(text)) return MASK;
  return text
    .replace(LONG_WORD, (word) => (/\d/.test(word) && /[A-Za-z]/.test(word) ? MASK : word))
    .replace(/[A-Za-z0-9_.-]+/g, (word) => (KEY_START.test(word) ? MASK : word));
}

/** Scheme and host: paths and queries of addresses carry keys often enough. */
export function shownAddress(address: string): string {
  try {
    const { protocol, host, pathname, search, username } = new URL(address);
    const isBare = (pathname === '/' || pathname === '') && search === '' && username === '';
    return `${protocol}//${host}${isBare ? '' : `/${MASK}`}`;
  } catch {
    return MASK;
  }
}

/** The values of an entry that must not appear in whatever else is printed about it, such as its server's words. */
export function secretsOf({ server }: ServerEntry, more: readonly string[] = []): readonly string[] {
  const values =
    server.kind === 'stdio'
      ? [
          ...Object.values(server.launch.env),
          ...server.launch.args.filter((each) => maskArgument(each) !== each),
        ]
      : server.kind === 'http'
        ? [server.url, ...Object.values(server.headers)]
        : [];
  return [...values, ...more].flatMap(partsOf).filter((value) => value.length >= 4);
}

/** Of `Bearer x`, `NAME=x` and `https://host/x` the x alone is secret too. */
function partsOf(value: string): readonly string[] {
  return [value, ...value.split(/[\s=:/?&@]+/).filter((part) => part.length >= 8)];
}

export function withoutSecrets(text: string, secrets: readonly string[]): string {
  const longestFirst = [...new Set(secrets)].sort((a, b) => b.length - a.length);
  const known = longestFirst.reduce((shown, secret) => shown.replaceAll(secret, MASK), text);
  return maskWords(known);
}

interface Replacement {
  readonly offset: number;
  readonly length: number;
  readonly shown: string;
}

/** A configuration's text as it may be shown: the same lines, with every value masked that is not known as harmless. */
export function maskConfiguration(text: string): string {
  const replacements: Replacement[] = [];
  let lastArguments: { readonly key: string; readonly values: string[] } | undefined;
  visit(
    text,
    {
      onLiteralValue(
        value: string | number | boolean | null,
        offset,
        length,
        _line,
        _character,
        pathSupplier,
      ) {
        if (value === null || typeof value === 'boolean') return;
        const path = pathSupplier();
        const key = JSON.stringify(path.slice(0, -1));
        if (lastArguments?.key !== key) lastArguments = { key, values: [] };
        lastArguments.values.push(String(value));
        const shown = shownValue(String(value), path, lastArguments.values);
        if (shown !== String(value)) replacements.push({ offset, length, shown: JSON.stringify(shown) });
      },
      onComment(offset, length) {
        replacements.push({ offset, length, shown: shownComment(text.slice(offset, offset + length)) });
      },
    },
    { allowTrailingComma: true },
  );
  let masked = '';
  let from = 0;
  for (const { offset, length, shown } of replacements) {
    masked += text.slice(from, offset) + shown;
    from = offset + length;
  }
  return masked + text.slice(from);
}

function shownValue(value: string, path: JSONPath, siblings: readonly string[]): string {
  const last = path.at(-1);
  const group = path.findLastIndex((segment) => segment === 'mcpServers' || segment === 'servers');
  const inEntry = group < 0 ? [] : path.slice(group + 2);
  if (inEntry.length === 1 && last === 'type') return value;
  if (inEntry.length === 1 && (last === 'command' || last === 'cwd' || last === 'envFile'))
    return maskWords(value);
  if (inEntry.length === 1 && (last === 'url' || last === 'serverUrl')) return shownAddress(value);
  if (inEntry.length === 2 && inEntry[0] === 'env' && last === URL_VARIABLE) return shownAddress(value);
  if (inEntry.length === 2 && inEntry[0] === 'args') return maskArguments(siblings).at(-1) ?? MASK;
  return maskWhole(value);
}

/** Old keys are kept in comments, too. Lines stay lines. */
function shownComment(comment: string): string {
  if (comment.startsWith('//')) return '// …';
  const lines = comment.slice(2, -2).split('\n');
  return `/*${lines.map((line) => (line.trim() === '' ? line : ' … ')).join('\n')}*/`;
}
