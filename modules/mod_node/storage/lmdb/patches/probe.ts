/**
 * Reads a whole LMDB environment in a separate process, because damage may crash it:
 * `node probe.ts FOLDER`. The process ends with exit code 0 when the environment is sound, and
 * prints a line for a check that it skipped.
 */
import { join } from "node:path";
import { open } from "lmdb";
import { checkPages } from "./check_pages.ts";
import { whyUnchecked } from "./layout.ts";

const folder = process.argv[2];
if (folder === undefined) throw new Error("no folder named");
const unchecked = whyUnchecked() ?? checkPages(join(folder, "data.mdb"));
if (unchecked !== undefined) console.log(unchecked);

const binary = { encoding: "binary", keyEncoding: "binary" } as const;
const root = open<Buffer, Buffer>({ path: folder, noSubdir: false, overlappingSync: false, ...binary });
for (const name of [...root.getKeys()]) {
  const table = root.openDB<Buffer, Buffer>(name.toString(), binary);
  let read = 0;
  for (const { value } of table.getRange()) read += value.length;
  if (read < 0) throw new Error("unreachable");
}
root.getStats();
await root.close();
