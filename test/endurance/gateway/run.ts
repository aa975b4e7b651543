/**
 * `npm run test:gateway-hostile -- [--entries N] [--readers N]`: the long form. Each attack over
 * HTTP/1.1 and HTTP/2, with how long it held the event loop; a directory of a million entries, a
 * thousand slow readers.
 */
import { parseArgs } from "node:util";
import { hostile } from "./hostile.ts";

/** Beyond what the process has at rest: garbage of documents that are nested deep is most of it. */
const MAX_MEMORY = 2 ** 30;
/** Of CPU time: decoding one block of 2 MiB. */
const MAX_TURN_MS = 500;

const { values } = parseArgs({
  options: { entries: { type: "string", default: "1000000" }, readers: { type: "string", default: "1000" } },
});
const { asked, failures, memory, turn } = await hostile({
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
if (turn > MAX_TURN_MS) all.push(`the event loop was held for ${turn} ms`);
for (const failure of all) console.log(failure);
console.log(`${asked - failures.length} passed, ${all.length} failed`);
process.exitCode = all.length === 0 ? 0 : 1;
