// `counterfoil serve` in front of a server over HTTP that wants a credential: it is in no file of ours.

import { afterEach, expect, test } from 'vitest';
import { startHttpServer } from '../../cli/http-server.ts';
import { CleanUps, type ToolResult, textOf } from '../processes.ts';
import { sdkClient, startServing } from './serving.ts';

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

test('its headers are sent with each request, their variables filled in from the environment', async () => {
  const upstream = await startHttpServer(cleanUps, '--bearer', 'k-secret-41');
  const headers = { Authorization: 'Bearer ${TICKETS_TOKEN}', 'X-Team': 'blue' };
  const serving = await startServing(
    cleanUps,
    { tickets: { url: upstream.url, headers, config: { tools: { act: { class: 'ordinary' } } } } },
    { env: { TICKETS_TOKEN: 'k-secret-41' } },
  );
  const { client } = await sdkClient(cleanUps, serving.url('/mcp/tickets'));
  const args = { fault: 'answer', mark: 'done' };
  const answer = (await client.callTool({ name: 'act', arguments: args })) as ToolResult;
  expect(textOf(answer)).toBe('done');
  expect(upstream.log('refused')).toEqual([]);
  expect(upstream.log('record')[0]?.headers).toMatchObject({
    authorization: 'Bearer k-secret-41',
    'x-team': 'blue',
  });
  expect(serving.process.stderr).not.toContain('k-secret');
});
