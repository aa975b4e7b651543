import assert from "node:assert/strict";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { compareNames } from "#node/formats/dag_pb/dag_pb.ts";
import { openScratchFile, SortedRuns } from "#node/storage/sorted_runs.ts";
import { Random } from "#test/endurance/fuzz/random.ts";

let folder = "";
test.before(async () => {
  folder = await mkdtemp(join(tmpdir(), "runs-"));
});
test.after(() => rm(folder, { recursive: true, force: true }));

interface Item {
  readonly name: string;
  readonly text: string;
}

const codec = {
  encode: ({ text }: Item) => Buffer.from(text),
  decode: (name: string, bytes: Uint8Array): Item => ({ name, text: Buffer.from(bytes).toString() }),
};

async function sorted(items: readonly Item[], openFile = openScratchFile): Promise<Item[]> {
  const runs = new SortedRuns<Item>(folder, codec, openFile);
  try {
    for (const item of items) await runs.add(item.name, item);
    return (await Array.fromAsync(runs.pages())).flat();
  } finally {
    await runs.close();
  }
}

/** Some megabytes of names: repeated ones, long ones, and names in all alphabets. */
function someItems(count: number): Item[] {
  const random = new Random(7);
  const letters = ["", "a", "B", "ü", "\u{1f600}", "\uffff", "0", "x".repeat(3000)];
  return Array.from({ length: count }, (_, at) => {
    const letter = letters[Math.floor(random.next() * letters.length)] as string;
    return { name: `${letter}${Math.floor(random.next() * 1000)}`, text: `${at} ${"v".repeat(at % 90)}` };
  });
}

const expected = (items: readonly Item[]) => items.toSorted((one, other) => compareNames(one.name, other.name));

test("entries are sorted by the bytes of their names, with equal names in their order, few or many", async () => {
  for (const count of [0, 1, 300, 20_000]) {
    const items = someItems(count);
    assert.deepEqual(await sorted(items), expected(items));
  }
  const large = { name: "m", text: "l".repeat(3 * 2 ** 20) };
  const items = [...someItems(10), large, ...someItems(10)];
  assert.deepEqual(await sorted(items), expected(items));
  assert.deepEqual(await readdir(folder), []);
});

test("all entries are returned on a full disk, and other faults are reported", async () => {
  const items = someItems(20_000);
  const failing = (code: string, writes: number) => async (path: string) => {
    const file = await openScratchFile(path);
    let left = writes;
    const { write } = file.handle;
    Object.assign(file.handle, {
      write(...args: unknown[]) {
        left -= 1;
        if (left < 0) throw Object.assign(new Error(`failed: ${code}`), { code });
        return Reflect.apply(write, file.handle, args);
      },
    });
    return file;
  };
  for (const writes of [0, 2]) assert.deepEqual(await sorted(items, failing("ENOSPC", writes)), expected(items));
  await assert.rejects(sorted(items, failing("EIO", 2)), { code: "EIO" });
});
