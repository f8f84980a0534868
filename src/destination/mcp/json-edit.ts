// Changes to one member of a JSON object's text that leave every other byte as it was written.

import { scanMembers } from '../../core/json-frame.ts';

/** Members by name, their values as JSON text. */
export type Members = Readonly<Record<string, string>>;

/** Puts members in front of the others. Those that are there already stay as they are. Not for text that is no object. */
export function withMembers(object: string, members: Members): string {
  const present = scanMembers(object)?.values;
  if (present === undefined) return object;
  const added = Object.entries(members)
    .filter(([name]) => !present.has(name))
    .map(([name, value]) => `${JSON.stringify(name)}:${value}`);
  if (added.length === 0) return object;
  const open = object.indexOf('{') + 1;
  return `${object.slice(0, open)}${added.join(',')}${present.size === 0 ? '' : ','}${object.slice(open)}`;
}

/** Puts a value in the place of one that is there, or adds the member; `undefined` takes it away. */
export function withMember(object: string, name: string, value: string | undefined): string {
  const members = scanMembers(object);
  const range = members?.values.get(name);
  if (members === undefined) return object;
  if (value === undefined) return range === undefined ? object : withoutMembers(object, [name]);
  if (range === undefined) return withMembers(object, { [name]: value });
  return `${object.slice(0, range.start)}${value}${object.slice(range.end)}`;
}

/** The object without some of its members; what stays keeps its text. */
export function withoutMembers(object: string, names: readonly string[]): string {
  const members = scanMembers(object);
  if (members === undefined || !names.some((name) => members.values.has(name))) return object;
  const kept = [...members.values]
    .filter(([name]) => !names.includes(name))
    .map(([name, { start, end }]) => `${JSON.stringify(name)}:${object.slice(start, end)}`);
  return `{${kept.join(',')}}`;
}
