// Reads sources for the tests of the house: what a file imports, which names it uses, which tests it declares.

import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync } from 'vite';

/** The checkout. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Path, with slashes, from the folder that was read → text. */
export type Sources = ReadonlyMap<string, string>;

export function readSources(folder: string, wanted: RegExp): Sources {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && wanted.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted();
  return new Map(
    files.map((file) => [relative(folder, file).split(sep).join('/'), readFileSync(file, 'utf8')]),
  );
}

/** A node of the syntax tree: its type, its place, and whatever else nodes of that type have. */
export interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly [member: string]: unknown;
}

export function isSyntaxNode(value: unknown): value is SyntaxNode {
  return (
    typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string'
  );
}

/** The node, and the way to it: the parents from the nearest on, each with the member that leads down. */
export type Visit = (node: SyntaxNode, parents: readonly Parent[]) => void;

export interface Parent {
  readonly node: SyntaxNode;
  readonly member: string;
}

export function visitSource(path: string, text: string, visit: Visit): void {
  const { program, errors } = parseSync(path, text);
  const [error] = errors;
  if (error !== undefined) throw new Error(`${path} cannot be read: ${error.message}`);
  walk(program as unknown as SyntaxNode, [], visit);
}

function walk(node: SyntaxNode, parents: readonly Parent[], visit: Visit): void {
  visit(node, parents);
  for (const [member, value] of Object.entries(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (isSyntaxNode(child)) walk(child, [{ node, member }, ...parents], visit);
    }
  }
}

export function lineOf(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length;
}

export interface Import {
  readonly specifier: string;
  readonly line: number;
  /** Gone when the source is compiled. */
  readonly isTypeOnly: boolean;
}

/** Every way in which one module may name another: `import`, `export from`, `import()`, `require()`, types. */
export function importsOf(path: string, text: string): readonly Import[] {
  const found: Import[] = [];
  visitSource(path, text, (node) => {
    const source = importSource(node);
    if (source === undefined) return;
    const specifier = constantText(source);
    if (specifier === undefined) {
      throw new Error(`${path}:${lineOf(text, node.start)} imports what is only known when it runs.`);
    }
    found.push({ specifier, line: lineOf(text, node.start), isTypeOnly: isTypeOnly(node) });
  });
  return found;
}

function importSource(node: SyntaxNode): SyntaxNode | undefined {
  switch (node.type) {
    case 'ImportDeclaration':
    case 'ExportAllDeclaration':
    case 'ExportNamedDeclaration':
    case 'ImportExpression':
    case 'TSImportType':
      return isSyntaxNode(node['source']) ? node['source'] : undefined;
    case 'CallExpression': {
      const [first] = node['arguments'] as readonly SyntaxNode[];
      return nameOf(node['callee']) === 'require' ? first : undefined;
    }
    default:
      return undefined;
  }
}

function isTypeOnly(node: SyntaxNode): boolean {
  return node.type === 'TSImportType' || node['importKind'] === 'type' || node['exportKind'] === 'type';
}

/** The text of a literal, or of a template without anything to fill in. */
export function constantText(node: unknown): string | undefined {
  if (!isSyntaxNode(node)) return undefined;
  if (node.type === 'Literal') return typeof node['value'] === 'string' ? node['value'] : undefined;
  if (node.type !== 'TemplateLiteral') return undefined;
  const quasis = node['quasis'] as readonly { readonly value: { readonly cooked: string } }[];
  return quasis.length === 1 ? quasis[0]?.value.cooked : undefined;
}

export function nameOf(node: unknown): string | undefined {
  return isSyntaxNode(node) && node.type === 'Identifier' ? String(node['name']) : undefined;
}

export interface NameUse {
  readonly name: string;
  /** `now` of `Date.now`; `undefined` where the name stands by itself. */
  readonly member: string | undefined;
  readonly line: number;
  /** `called`: `Date()`. `made`: `new Date()`. */
  readonly as: 'called' | 'made' | 'read';
  readonly argumentCount: number;
}

/** Where names are used that a file has not declared as a member: `process.pid`, but not `state.process`. */
export function nameUsesOf(path: string, text: string): readonly NameUse[] {
  const found: NameUse[] = [];
  visitSource(path, text, (node, [parent, ...above]) => {
    const name = nameOf(node);
    if (name === undefined || parent === undefined || isOnlyALabel(parent)) return;
    const isObject = parent.node.type === 'MemberExpression' && parent.member === 'object';
    const member = isObject ? memberName(parent.node) : undefined;
    const user = isObject ? above[0] : parent;
    const call = user?.member === 'callee' ? user.node : undefined;
    found.push({
      name,
      member,
      line: lineOf(text, node.start),
      as: call === undefined ? 'read' : call.type === 'NewExpression' ? 'made' : 'called',
      argumentCount: call === undefined ? 0 : (call['arguments'] as readonly unknown[]).length,
    });
  });
  return found;
}

/** A name that only says what a member, a key or an import is called. */
function isOnlyALabel({ node, member }: Parent): boolean {
  if (member === 'key') return node['computed'] !== true;
  if (member === 'property') return node.type === 'MemberExpression' && node['computed'] !== true;
  return (
    /^(Import|Export).*Specifier$/.test(node.type) || (node.type === 'TSQualifiedName' && member === 'right')
  );
}

function memberName(node: SyntaxNode): string | undefined {
  return node['computed'] === true ? constantText(node['property']) : nameOf(node['property']);
}
