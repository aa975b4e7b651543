/** Reads through a whole LMDB environment, in a process of its own since damage may end it: `node probe.ts FOLDER`. */
import { join } from "node:path";
import { open } from "lmdb";
import { checkStructure } from "./structure.ts";

const folder = process.argv[2];
if (folder === undefined) throw new Error("no folder named");
checkStructure(join(folder, "data.mdb"));

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
