import assert from "node:assert/strict";
import { test } from "node:test";
import { addEntries, hashOnly } from "#node/content/adder/adder.ts";
import { addSettings } from "#node/content/adder/settings.ts";
import { Pins } from "#node/content/pins/pins.ts";
import type { AddEntry, AddEvent } from "#node/content/unixfs/add.ts";
import { BlockService } from "#node/storage/blockstore/block_service.ts";
import { memoryBlocks } from "#node/storage/blockstore/memory.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import { SharedLock } from "#node/util/async/shared_lock.ts";

async function* once<T>(value: T): AsyncGenerator<T> {
  yield value;
}

/** How often other work got its turn meanwhile, and the last event. */
async function turnsOf(events: AsyncIterable<AddEvent>): Promise<{ turns: number; last: AddEvent | undefined }> {
  let turns = 0;
  let over = false;
  const turn = () => {
    turns += 1;
    if (!over) setImmediate(turn);
  };
  setImmediate(turn);
  let last: AddEvent | undefined;
  for await (const event of events) last = event;
  over = true;
  return { turns, last };
}

type Adding = (entry: AddEntry, options: Parameters<typeof addSettings>[0]) => AsyncIterable<AddEvent>;

const ways: Readonly<Record<string, Adding>> = {
  stored(entry, options) {
    const blocks = new BlockService(memoryBlocks());
    const lock = new SharedLock();
    const pins = new Pins(blocks, memoryMetadata(), lock);
    const deps = { blocks, wholeBlocks: blocks, pins, lock, scratch: "unused", sync: () => blocks.store.sync() };
    return addEntries(deps, once(entry), addSettings(options), { pin: true });
  },
  "hashed only": (entry, options) => hashOnly(once(entry), addSettings(options)),
};

for (const [way, add] of Object.entries(ways)) {
  test(`a name of 2,000 levels leaves other work its turns while it is ${way}`, async () => {
    const path = Array.from({ length: 2000 }, () => "d").join("/");
    const { turns, last } = await turnsOf(add({ path, kind: "file", body: once(Buffer.from("x")) }, {}));
    assert.equal(last?.name, "d");
    assert.ok(turns > 25, `${turns} turns`);
  });

  test(`a file of pieces of one byte leaves other work its turns while it is ${way}`, async () => {
    const body = Buffer.alloc(50_000, 7);
    const entry = { path: "f", kind: "file", body: once(body) } as const;
    const { turns, last } = await turnsOf(add(entry, { chunker: "size-1" }));
    // As go-ipfs 0.9 gives it.
    assert.equal(String(last?.built?.cid), "Qmb6Wqnm8CmTAY6SUNQ1WV3XXsDxzU7eefWonY939FhEc9");
    assert.ok(turns > 300, `${turns} turns`);
  });
}
