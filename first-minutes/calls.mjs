// What the agent does in the first minutes: twenty reads, twelve writes of which five are ordinary mistakes, and one
// that cannot be taken back.

import { join } from 'node:path';

/** Text and names that are there before the agent comes. */
export const NOTES = {
  'today.md': 'Call the bank.\nWater the plants.\n',
  'ideas/garden.md': 'Tomatoes, and a bench. “Not yet.”\n',
};
export const ENTITIES = [
  { name: 'Ada', entityType: 'person', observations: ['writes to the point'] },
  { name: 'Old plan', entityType: 'plan', observations: ['nobody follows it'] },
];

/** @returns {readonly { server: string, tool: string, args: object }[]} */
export function reads(notes) {
  const today = join(notes, 'today.md');
  const garden = join(notes, 'ideas/garden.md');
  const of = (server, ...calls) => calls.map(([tool, args = {}]) => ({ server, tool, args }));
  return [
    ...of(
      'files',
      ['list_allowed_directories'],
      ['list_directory', { path: notes }],
      ['list_directory_with_sizes', { path: notes }],
      ['directory_tree', { path: notes }],
      ['read_text_file', { path: today }],
      ['read_text_file', { path: garden, head: 1 }],
      ['read_multiple_files', { paths: [today, garden] }],
      ['search_files', { path: notes, pattern: '*.md' }],
      // What the servers refuse reaches the agent in their own words.
      ['read_text_file', { path: join(notes, 'nowhere.md') }],
      ['edit_file', { path: today, edits: [{ oldText: 'bank', newText: 'baker' }], dryRun: true }],
    ),
    ...of(
      'memory',
      ['read_graph'],
      ['search_nodes', { query: 'point' }],
      ['open_nodes', { names: ['Ada'] }],
      ['open_nodes', { names: ['Nobody'] }],
    ),
    ...of(
      'notion',
      ['API-get-self'],
      ['API-get-users', { page_size: 2 }],
      ['API-post-search', { query: 'a' }],
    ),
    ...of(
      'playwright',
      ['browser_tabs', { action: 'list' }],
      ['browser_snapshot'],
      ['browser_find', { text: 'a' }],
    ),
  ];
}

/**
 * `says`: what the server answers, through us as without us. `mistake`: it changes nothing, and says why.
 * @returns {readonly { server: string, tool: string, args: object, says: RegExp, mistake?: string }[]}
 */
export function writes(notes) {
  const today = join(notes, 'today.md');
  const plan = join(notes, 'plan.md');
  const edit = (oldText, newText) => ({ edits: [{ oldText, newText }] });
  return [
    {
      server: 'files',
      tool: 'write_file',
      args: { path: plan, content: 'Pack.\n' },
      says: /^Successfully wrote/,
    },
    {
      server: 'files',
      tool: 'create_directory',
      args: { path: join(notes, 'done') },
      says: /^Successfully created/,
    },
    {
      server: 'files',
      tool: 'edit_file',
      args: { path: today, ...edit('bank', 'baker') },
      says: /\+Call the baker/,
    },
    {
      mistake: 'the text to change is not there',
      server: 'files',
      tool: 'edit_file',
      args: { path: today, ...edit('Call the mayor', 'Call nobody') },
      says: /^Could not find exact match for edit/,
    },
    {
      mistake: 'a path that is not allowed',
      server: 'files',
      tool: 'write_file',
      args: { path: join(notes, '../elsewhere.md'), content: 'x' },
      says: /^Access denied - path outside allowed directories/,
    },
    {
      mistake: 'an argument is left out',
      server: 'files',
      tool: 'write_file',
      args: { path: join(notes, 'empty.md') },
      says: /expected string, received undefined at content/,
    },
    {
      mistake: 'the file is not there',
      server: 'files',
      tool: 'move_file',
      args: { source: join(notes, 'plans.md'), destination: join(notes, 'done/plans.md') },
      says: /^ENOENT: no such file or directory/,
    },
    {
      server: 'files',
      tool: 'move_file',
      args: { source: plan, destination: join(notes, 'done/plan.md') },
      says: /^Successfully moved/,
    },
    {
      server: 'memory',
      tool: 'create_entities',
      args: { entities: [{ name: 'Grace', entityType: 'person', observations: ['likes trains'] }] },
      says: /"name": "Grace"/,
    },
    {
      mistake: 'an argument is of another type',
      server: 'memory',
      tool: 'create_entities',
      args: { entities: 'Linus' },
      says: /expected array, received string at entities/,
    },
    {
      server: 'memory',
      tool: 'create_relations',
      args: { relations: [{ from: 'Ada', to: 'Grace', relationType: 'knows' }] },
      says: /"relationType": "knows"/,
    },
    {
      server: 'memory',
      tool: 'add_observations',
      args: { observations: [{ entityName: 'Ada', contents: ['moves in May'] }] },
      says: /moves in May/,
    },
  ];
}

export const IRREVERSIBLE = {
  server: 'memory',
  tool: 'delete_entities',
  args: { entityNames: ['Old plan'] },
};

/** What lies in the folder at the end: each write once, and nothing of a mistake. */
export const NOTES_AFTER = {
  'today.md': 'Call the baker.\nWater the plants.\n',
  'ideas/garden.md': NOTES['ideas/garden.md'],
  'done/plan.md': 'Pack.\n',
};
export const MEMORY_AFTER = [
  {
    type: 'entity',
    name: 'Ada',
    entityType: 'person',
    observations: ['writes to the point', 'moves in May'],
  },
  { type: 'entity', name: 'Grace', entityType: 'person', observations: ['likes trains'] },
  { type: 'relation', from: 'Ada', to: 'Grace', relationType: 'knows' },
];
