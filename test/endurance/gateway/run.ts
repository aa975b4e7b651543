/**
 * `npm run test:gateway-hostile -- [--entries N] [--readers N]`: the long form. It runs each attack
 * over HTTP/1.1 and HTTP/2 and measures how long the event loop is blocked, with a directory of a
 * million entries and a thousand slow readers.
 */
import { parseArgs } from "node:util";
import { hostile } from "./hostile.ts";

/** Maximum growth of the process. Most of it is garbage of deeply nested documents. */
const MAX_MEMORY = 2 ** 30;
/** CPU time of decoding one block of 2 MiB. */
const MAX_TURN_MS = 500;

const { values } = parseArgs({
  options: { entries: { type: "string", default: "1000000" }, readers: { type: "string", default: "1000" } },
});
const { requests, failures, memory, turn } = await hostile({
  content: { levels: 20_000, entries: Number(values.entries), heavy: 64, abyss: 2 ** 20 },
  enough: 16 * 2 ** 20,
  all: true,
  kinds: 5,
  readers: Number(values.readers),
  turns: true,
  report: (line) => console.log(line),
});
const all = [...failures];
if (memory.attacks > MAX_MEMORY) all.push(`${memory.attacks} bytes of memory with attacks`);
if (turn > MAX_TURN_MS) all.push(`the event loop was blocked for ${turn} ms`);
for (const failure of all) console.log(failure);
console.log(`${requests - failures.length} passed, ${all.length} failed`);
process.exitCode = all.length === 0 ? 0 : 1;
