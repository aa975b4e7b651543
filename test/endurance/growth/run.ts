/**
 * `npm run test:growth -- [--entries N] [--heap MIB]`: the long form. Node lets its heap grow as
 * long as there is memory. With a limit, the size of the live data is visible.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { grow } from "./growth.ts";

const { values } = parseArgs({
  options: { entries: { type: "string", default: "1000000" }, heap: { type: "string", default: "96" } },
});
const folder = await mkdtemp(join(tmpdir(), "modhost-growth-"));
const mebibytes = (bytes: number) => (bytes / 2 ** 20).toFixed(0).padStart(6);
try {
  console.log("seconds  own MiB  mapped MiB");
  await grow({
    folder,
    entries: Number(values.entries),
    nodeFlags: [`--max-old-space-size=${values.heap}`],
    report: ({ name, seconds, own, mapped }) =>
      console.log(`${seconds.toFixed(1).padStart(7)}  ${mebibytes(own)}  ${mebibytes(mapped)}  ${name}`),
  });
  console.log("1 passed, 0 failed");
} finally {
  await rm(folder, { recursive: true, force: true });
}
