import assert from "node:assert/strict";
import { test } from "node:test";
import { diskFs, SegmentFiles, type SegmentFs } from "#node/storage/blockstore/segments/files.ts";
import { folder } from "./workshop.ts";

/** Calls `then` after a number of microtasks. */
function later(turns: number, then: () => void): void {
  if (turns === 0) then();
  else queueMicrotask(() => later(turns - 1, then));
}

test("a removed segment is not closed under a reader, whenever the reader comes", async () => {
  const path = folder();
  for (let turns = 0; turns < 8; turns += 1) {
    let reading = 0;
    let closedUnderReader = false;
    const watching: SegmentFs = {
      ...diskFs,
      async open(name, create) {
        const file = await diskFs.open(name, create);
        return {
          read: (into, at) => file.read(into, at),
          write: (from, at) => file.write(from, at),
          sync: () => file.sync(),
          truncate: (length) => file.truncate(length),
          size: () => file.size(),
          close: () => {
            closedUnderReader ||= reading > 0;
            return file.close();
          },
        };
      },
    };
    const files = new SegmentFiles(path, watching);
    await files.list();
    await files.begin(1);
    const first = Promise.withResolvers<void>();
    const last = Promise.withResolvers<void>();
    const using = files.use(1, () => first.promise);
    const removed = files.remove(1);
    const late = new Promise<void>((resolve) => {
      first.resolve();
      later(turns, () => {
        const use = files.use(1, async () => {
          reading += 1;
          await last.promise;
          reading -= 1;
        });
        // A reader that comes after the end finds no file.
        resolve(use.catch(() => undefined));
      });
    });
    await using;
    await new Promise(setImmediate);
    last.resolve();
    await Promise.all([removed, late]);
    assert.equal(closedUnderReader, false, `after ${turns} turns`);
    await files.close();
  }
});
