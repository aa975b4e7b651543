import assert from "node:assert/strict";
import fs from "node:fs";
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { FileWatch, type FileWatchDeps } from "#core/util/file_watch.ts";
import { eventually } from "#test/support/eventually.ts";

const until = (holds: () => boolean) => eventually(String(holds), holds, { every: 5 });

async function watching(t: TestContext, names: readonly string[], deps: Partial<FileWatchDeps> = {}) {
  const folder = await mkdtemp(join(tmpdir(), "modhost-watch-"));
  const reported: string[] = [];
  const faults: string[] = [];
  const watch = new FileWatch({
    files: () => names.map((name) => join(folder, name)),
    changed: async (files) => {
      for (const file of files) reported.push(basename(file));
      return [];
    },
    failed: (_text, ...values) => void faults.push(values.join(" ")),
    still: 10,
    retries: [10, 10],
    ...deps,
  });
  t.after(() => {
    watch.close();
    return rm(folder, { recursive: true, force: true });
  });
  const write = (name: string, text: string) => writeFile(join(folder, name), text);
  return { folder, reported, faults, watch, write };
}

describe("watched files", { timeout: 300_000 }, () => {
  test("are reported once they have changed: written, replaced, removed, or created with their folder", async (t) => {
    const { folder, reported, watch, write } = await watching(t, ["a", "b", "in/it/c"]);
    await write("a", "one");
    await write("b", "one");
    await watch.follow();
    await write("a", "more");
    await until(() => reported.length === 1);
    await write("x", "another");
    await rename(join(folder, "x"), join(folder, "b"));
    await until(() => reported.length === 2);
    await rm(join(folder, "a"));
    await until(() => reported.length === 3);
    await mkdir(join(folder, "in/it"), { recursive: true });
    await write("in/it/c", "new");
    await until(() => reported.length === 4);
    assert.deepEqual(reported, ["a", "b", "a", "c"]);
  });

  test("count as changed if they were written after a moment, whoever else follows them meanwhile", async (t) => {
    const { reported, watch, write } = await watching(t, ["a", "b"]);
    await write("a", "one");
    await write("b", "one");
    await Promise.all([watch.follow(), watch.follow(0), watch.follow()]);
    await until(() => reported.length === 2);
    await sleep(100);
    assert.deepEqual(reported.toSorted(), ["a", "b"]);
  });

  test("are awaited while they are empty, and reported as they are after the last retry", async (t) => {
    const { reported, watch, write } = await watching(t, ["a", "b"], { retries: [10, 600_000] });
    await write("a", "one");
    await watch.follow();
    await write("a", "");
    await write("b", "whole");
    await until(() => reported.includes("b"));
    await sleep(100);
    assert.deepEqual(reported, ["b"]);
    await write("a", "whole");
    await until(() => reported.length === 2);
    assert.deepEqual(reported, ["b", "a"]);
  });

  test("that cannot be used are reported again, as often as there are retries, and again after a change", async (t) => {
    const calls: boolean[] = [];
    const { watch, write } = await watching(t, ["a"], {
      changed: async (files, mayRetry) => {
        calls.push(mayRetry);
        return files;
      },
    });
    await watch.follow();
    await write("a", "bad");
    await until(() => calls.length === 3);
    await sleep(100);
    assert.deepEqual(calls, [true, true, false]);
    await write("a", "still bad");
    await until(() => calls.length === 6);
  });

  test("are polled if the system reports nothing or has no more watchers, and a failed watcher is opened again", async (t) => {
    const { folder, reported, faults, watch, write } = await watching(t, ["a"]);
    const opened = t.mock.method(fs, "watch");
    syncBuiltinESMExports();
    await watch.follow();
    const [first] = opened.mock.calls.map(({ result }) => result);
    first?.emit("error", new Error("gone"));
    const ours = () => opened.mock.calls.filter(({ arguments: [path] }) => path === folder);
    await until(() => ours().length === 2);
    await write("a", "one");
    await until(() => reported.length === 1);
    opened.mock.mockImplementation(() => {
      throw new Error("there are no more watchers");
    });
    const deaf = await watching(t, ["a"], { poll: 20 });
    const loud = await watching(t, ["a"]);
    await deaf.watch.follow();
    await loud.watch.follow();
    await loud.watch.follow();
    await Promise.all([deaf.write("a", "one"), loud.write("a", "one")]);
    await until(() => deaf.reported.length === 1 && loud.reported.length === 1);
    opened.mock.restore();
    syncBuiltinESMExports();
    assert.deepEqual([faults, deaf.faults], [[], []]);
    assert.match(loud.faults.join(), new RegExp(`^${loud.folder} there are no more watchers$`));
  });
});
