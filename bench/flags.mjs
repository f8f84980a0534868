// The flags of the benchmark. What is not known is refused: a mistyped flag must not become another measurement.

export const USAGE = `node bench/bench.mjs [flags]

  --json               the last line is one JSON object
  --quick              fewer and shorter rounds, for a check at every commit
  --rounds N           clean rounds wanted for each concurrency (7; with --quick 2)
  --concurrency LIST   callers at once (1,16,64)
  --delay 0|20         milliseconds that the destination takes to answer (0)
  --stdio              measure reads through the gateway over stdio in place of writes through the ledger
  --down               measure four destinations over HTTP while a fifth hangs and refuses connections
  --mcp                measure the gateway over HTTP and over stdio, beside mcp-proxy and supergateway`;

/** @returns {{ problem: string } | { json: boolean, quick: boolean, stdio: boolean, mcp: boolean, down: boolean, rounds: number, concurrency: readonly number[], delayMs: number }} */
export function readFlags(argv) {
  const flags = {
    json: false,
    quick: false,
    stdio: false,
    mcp: false,
    down: false,
    concurrency: [1, 16, 64],
    delayMs: 0,
  };
  for (let at = 0; at < argv.length; at += 1) {
    const [name, attached] = argv[at].split(/=(.*)/s, 2);
    const value = () => {
      if (attached !== undefined) return attached;
      at += 1;
      return argv[at] ?? '';
    };
    switch (name) {
      case '--json':
      case '--quick':
      case '--stdio':
      case '--mcp':
      case '--down':
        if (attached !== undefined) return { problem: `${name} takes no value.` };
        flags[name.slice(2)] = true;
        break;
      case '--rounds': {
        const rounds = wholeNumber(value());
        if (rounds === undefined) return { problem: '--rounds takes a whole number from 1.' };
        flags.rounds = rounds;
        break;
      }
      case '--concurrency': {
        const list = value().split(',').map(wholeNumber);
        if (list.includes(undefined))
          return { problem: '--concurrency takes whole numbers from 1, with commas.' };
        flags.concurrency = [...new Set(list)];
        break;
      }
      case '--delay': {
        const text = value();
        if (text !== '0' && text !== '20') return { problem: '--delay takes 0 or 20.' };
        flags.delayMs = Number(text);
        break;
      }
      default:
        return { problem: `${argv[at]} is no flag of the benchmark.` };
    }
  }
  if (flags.stdio && flags.mcp) return { problem: '--mcp measures over stdio as well: leave --stdio out.' };
  if (flags.down && (flags.stdio || flags.mcp))
    return { problem: '--down is a measurement of its own: leave --stdio and --mcp out.' };
  return { rounds: flags.quick ? 2 : 7, ...flags };
}

function wholeNumber(text) {
  return /^[1-9]\d{0,3}$/.test(text) ? Number(text) : undefined;
}
