// A server over HTTP in a process of its own, for the tests of the commands; its log says what has reached it.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type CleanUps, LineProcess, until } from '../gateway/processes.ts';

const SERVER = fileURLToPath(new URL('../destination/fixtures/scripted-http-server.mjs', import.meta.url));

export interface HttpLogEntry {
  readonly event: string;
  readonly method?: string;
  readonly arguments?: object;
  readonly headers?: { readonly [name: string]: string };
}

export interface HttpServer {
  readonly url: string;
  log(event?: string): readonly HttpLogEntry[];
}

export async function startHttpServer(cleanUps: CleanUps, ...flags: string[]): Promise<HttpServer> {
  const file = join(cleanUps.folder(), 'log');
  const server = cleanUps.started(new LineProcess(process.execPath, [SERVER, file, ...flags]));
  cleanUps.add(() => server.kill('SIGTERM'));
  const { text: port } = await until(() => server.lines[0], 'the port of the server');
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    log(event) {
      const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : [];
      const all = lines.map((line) => JSON.parse(line) as HttpLogEntry);
      return event === undefined ? all : all.filter((each) => each.event === event);
    },
  };
}
