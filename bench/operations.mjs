// A fixed number of operations through the product in a process of its own, for what must be counted from
// outside: fsyncs, and the time from the start of the process to its first operation's answer.
//
//   node operations.mjs '{"data":…,"port":…,"operations":…,"concurrency":…,"withReadBack":…}'
//
// Prints one line of JSON.

import { readFileSync, statSync } from 'node:fs';
import { destinationClient } from './destination-process.mjs';
import { nextKey } from './payloads.mjs';
import { openProduct } from './product.mjs';

const { data, port, operations, concurrency, withReadBack } = JSON.parse(process.argv[2]);

const client = destinationClient(port);
const product = await openProduct({ data, client, withReadBack });
await product.operation(nextKey());
// Since the start of this process; `performance` counts from there.
const firstOperationMs = performance.now();

let left = operations - 1;
const caller = async () => {
  while (left > 0) {
    left -= 1;
    await product.operation(nextKey());
  }
};
await Promise.all(Array.from({ length: concurrency }, caller));
const { commits } = product.store;
const logBytes = statSync(`${product.file}-wal`).size;
await product.close();
await client.close();
console.log(
  JSON.stringify({
    firstOperationMs,
    commits,
    logBytes,
    fileBytes: statSync(product.file).size,
    peakRssMb: peakRssMb(),
  }),
);

function peakRssMb() {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1]) / 1024;
  } catch {
    return process.memoryUsage().rss / 2 ** 20;
  }
}
