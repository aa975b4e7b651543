/**
 * Changes the namespace of a repo by several concurrent calls and reports each finished call, until
 * it is killed.
 */

import { makeDirectory, move, remove } from "#node/content/mfs/operations.ts";
import { namespacePath } from "#node/content/mfs/path.ts";
import { writeFile } from "#node/content/mfs/write_file.ts";
import { openNode } from "#node/node/open.ts";

const node = await openNode({ repo: process.argv[2] as string });
const { files } = node;
const flush = true;
const defaults = { flush, count: undefined, create: true, parents: false, rawLeaves: undefined, settings: undefined };

const write = (path: string, text: string, offset = 0) => {
  const body = async () =>
    (async function* () {
      yield Buffer.from(text);
    })();
  return writeFile(files, namespacePath(path), body, { ...defaults, offset, truncate: false });
};

/**
 * Each worker appends to a log, and creates files that it moves and removes. So the state shows
 * which calls have happened.
 */
async function work(worker: number): Promise<void> {
  const folder = `/w${worker}`;
  await makeDirectory(files, namespacePath(folder), { flush, parents: true, settings: undefined });
  for (let count = 0; ; count += 1) {
    await write(`${folder}/log`, `${String(count).padStart(7, "0")}\n`, count * 8);
    process.send?.({ worker, count, step: "logged" });
    await write(`${folder}/new${count}`, `${count}`);
    await move(files, namespacePath(`${folder}/new${count}`), namespacePath(`${folder}/done${count}`), { flush });
    process.send?.({ worker, count, step: "moved" });
    if (count < 5) continue;
    const old = namespacePath(`${folder}/done${count - 5}`);
    await remove(files, old, { flush, recursive: false, force: false });
    process.send?.({ worker, count, step: "removed" });
  }
}

await Promise.all([0, 1, 2].map(work));
