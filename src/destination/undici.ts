// The HTTP client, loaded when the first request is made: it is a third of the start of a command that makes none.

import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

export function undici(): typeof import('undici') {
  return require('undici');
}
