// Starts the fixture server in a process of its own.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const SERVER = fileURLToPath(new URL('fixture-server.mjs', import.meta.url));

/**
 * @param {number} port 0 takes any that is free
 * @returns {Promise<{ url: string, ofCalls(): Promise<number>, close(): Promise<void> }>} `ofCalls`: how many calls of
 *   tools, and answers to what they have asked back, have reached it
 */
export async function startFixture(port) {
  const child = fork(SERVER, [String(port)]);
  const told = async () => {
    const [message] = await Promise.race([
      once(child, 'message'),
      once(child, 'exit').then(([code]) => [{ problem: `The fixture ended with ${code}.` }]),
    ]);
    if (message.problem !== undefined) throw new Error(message.problem);
    return message;
  };
  const { port: given } = await told();
  return {
    url: `http://127.0.0.1:${given}/mcp`,
    async ofCalls() {
      child.send('ofCalls');
      return (await told()).ofCalls;
    },
    async close() {
      if (child.exitCode !== null) return;
      child.disconnect();
      await once(child, 'exit');
    },
  };
}
