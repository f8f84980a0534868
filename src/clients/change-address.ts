// A server that is reached by an address, put behind us and taken back: the address and the headers become variables
// of the entry's environment, where its client fills them in as before and no command line shows them.

import { applyEdits, type Edit, getNodeValue, type JSONPath, modify, type Node } from 'jsonc-parser';
import { parseConfiguration, propertiesOf, textOf } from './entries.ts';
import { gapBefore, gapBetween, member } from './layout.ts';
import type { AddressVariables, OwnAddress } from './own-command.ts';

/** Names of members change, and our words come in; the values of headers stay where they are. */
export function guardAddressEdits(
  text: string,
  entry: Node,
  { words, address }: { readonly words: readonly string[]; readonly address: AddressVariables },
): readonly Edit[] {
  const url = member(entry, 'url') ?? member(entry, 'serverUrl');
  const property = url?.parent;
  if (url === undefined || property === undefined) throw new Error('Assertion: a server has an address.');
  const headers = member(entry, 'headers');
  const type = member(entry, 'type');
  const gap = gapBefore(text, entry, url);
  const [program, ...args] = words.map((word) => JSON.stringify(word));
  const urlVariable = `${JSON.stringify(address.url)}: ${textOf(text, url)}`;
  const command = [
    `"command": ${program}`,
    `"args": [${args.join(', ')}]`,
    ...(headers === undefined ? [`"env": {${urlVariable}}`] : []),
  ];
  return [
    { offset: property.offset, length: property.length, content: command.join(`,${gap}`) },
    ...(type === undefined ? [] : [{ offset: type.offset, length: type.length, content: '"stdio"' }]),
    ...(headers === undefined ? [] : headerEdits(text, headers, urlVariable, address)),
  ];
}

/** The address comes first among them. */
function headerEdits(
  text: string,
  headers: Node,
  urlVariable: string,
  address: AddressVariables,
): readonly Edit[] {
  const properties = headers.children ?? [];
  const [first] = properties;
  const variables = new Map(address.headers.map(({ name, variable }) => [name, variable]));
  const name = keyOf(headers.parent);
  return [
    { offset: name.offset, length: name.length, content: '"env"' },
    ...(first === undefined ? [{ offset: headers.offset + 1, length: 0, content: urlVariable }] : []),
    ...properties.map((property) => {
      const key = keyOf(property);
      const before = property === first ? `${urlVariable},${gapBetween(text, headers, first)}` : '';
      const variable = JSON.stringify(variables.get(String(key.value)));
      return { offset: key.offset, length: key.length, content: before + variable };
    }),
  ];
}

function keyOf(property: Node | undefined): Node {
  const key = property?.children?.[0];
  if (key === undefined) throw new Error('Assertion: a member has a name.');
  return key;
}

/**
 * An entry's text with its address and headers again, as their variables are now, and all else as it is now.
 * @param before the entry as it was before us
 * @returns `undefined` where it had no address, or where the entry does not hold the address any more
 */
export function takeOutAddress(text: string, before: Node, own: OwnAddress): string | undefined {
  const urlMember = ['url', 'serverUrl'].find((each) => member(before, each) !== undefined);
  const parsed = parseConfiguration(text);
  if (!parsed.ok || own.variable === undefined || urlMember === undefined) return undefined;
  const env = member(parsed.root, 'env');
  const url = env === undefined ? undefined : member(env, own.variable);
  const command = member(parsed.root, 'command')?.parent;
  if (env === undefined || url === undefined || command === undefined) return undefined;
  const headers = own.headers.flatMap(({ name, variable }) => {
    const value = member(env, variable);
    return value === undefined ? [] : [[name, getNodeValue(value) as unknown] as const];
  });
  const ours = new Set([own.variable, ...own.headers.map(({ variable }) => variable)]);
  const isEnvOurs = propertiesOf(env).every(({ name }) => ours.has(name));
  const type = member(before, 'type');
  const hadHeaders = member(before, 'headers') !== undefined;
  const changes: (readonly [JSONPath, unknown])[] = [[['args'], undefined]];
  if (isEnvOurs) changes.push([['env'], undefined]);
  else for (const name of ours) changes.push([['env', name], undefined]);
  if (hadHeaders || headers.length > 0) changes.push([['headers'], Object.fromEntries(headers)]);
  if (type !== undefined) changes.push([['type'], getNodeValue(type)]);
  // A client that writes its file anew may say by itself what it starts.
  else if (member(parsed.root, 'type')?.value === 'stdio') changes.push([['type'], undefined]);
  const address: Edit = {
    offset: command.offset,
    length: command.length,
    content: `${JSON.stringify(urlMember)}: ${textOf(text, url)}`,
  };
  return changes.reduce(
    (now, [path, value]) => applyEdits(now, modify(now, path, value, {})),
    applyEdits(text, [address]),
  );
}
