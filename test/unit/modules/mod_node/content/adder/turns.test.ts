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
import { goRandom } from "#test/support/go_random.ts";

async function* once<T>(value: T): AsyncGenerator<T> {
  yield value;
}

/** Returns how often other work of the process had its turn meanwhile, and the last event. */
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

type Adding = (
  entry: AddEntry,
  options: Parameters<typeof addSettings>[0],
  signal?: AbortSignal,
) => AsyncIterable<AddEvent>;

const ways: Readonly<Record<string, Adding>> = {
  stored(entry, options, signal) {
    const blocks = new BlockService(memoryBlocks());
    const lock = new SharedLock();
    const pins = new Pins(blocks, memoryMetadata(), lock);
    const deps = { blocks, wholeBlocks: blocks, pins, lock, scratch: "unused", sync: () => blocks.store.sync() };
    return addEntries(deps, once(entry), addSettings(options), { pin: true, signal });
  },
  "hashed only": (entry, options, signal) => hashOnly(once(entry), addSettings(options), { signal }),
};

for (const [way, add] of Object.entries(ways)) {
  test(`a name of 2,000 levels does not block other work while it is ${way}`, async () => {
    const path = Array.from({ length: 2000 }, () => "d").join("/");
    const { turns, last } = await turnsOf(add({ path, kind: "file", body: once(Buffer.from("x")) }, {}));
    assert.equal(last?.name, "d");
    assert.ok(turns > 25, `${turns} turns`);
  });

  test(`a file in pieces of one byte does not block other work while it is ${way}`, async () => {
    const body = Buffer.alloc(50_000, 7);
    const entry = { path: "f", kind: "file", body: once(body) } as const;
    const { turns, last } = await turnsOf(add(entry, { chunker: "size-1" }));
    // The CID of go-ipfs 0.9.
    assert.equal(String(last?.built?.cid), "Qmb6Wqnm8CmTAY6SUNQ1WV3XXsDxzU7eefWonY939FhEc9");
    assert.ok(turns > 300, `${turns} turns`);
  });

  test(`splitting of received bytes stops when the client disconnects while it is ${way}`, async () => {
    const abort = new AbortController();
    const entry = { path: "f", kind: "file", body: once(Buffer.alloc(5_000_000)) } as const;
    const adding = Array.fromAsync(add(entry, { chunker: "size-1" }, abort.signal));
    setImmediate(() => abort.abort(new Error("the client has left")));
    await assert.rejects(adding, { message: "the client has left" });
  });
}

/** CIDs of a file of 20,000 bytes, as Kubo 0.43 computes them. */
const rabinCids: Readonly<Record<string, string>> = {
  "rabin-3": "QmdgYXs8sGsGi3dBGryQm1LR78ytDmXJ7V1iYcC8CzRgoK",
  "rabin-47": "QmdgYXs8sGsGi3dBGryQm1LR78ytDmXJ7V1iYcC8CzRgoK",
  "rabin-48": "QmXJUhUxVS6JNSyRQS4ZiATkkPAGCDZGAVHMWcWHDG363Y",
  "rabin-49": "QmestzfNNcbwdxyF2Z3QE2wqLjpg5QScYQcDC2V3dofzD5",
  "rabin-63": "QmXNPDVjckHWZ6FcPcncqb8ByEKgbvfHGLyTMwZvgUGVX2",
  "rabin-64": "QmYS8AiENDni9g1yvoG5baCxir8hiGpSKdCDD62uNtfzbZ",
  "rabin-16-17-18": "QmbJ5vGTZvsHKpHjKLz5r6stDJW8YKAB2SpV5z9gQa5DcG",
  "rabin-16-17-1000": "QmSVQytdt1AqqF64NuRFaEa9oF61xu1v1heFpraWjiz8ng",
  "rabin-16-300-301": "QmVTNinYqksrn6e9qgE9A2bgb1PcaQediCUghiYKpZ6UPV",
  "rabin-min:16-avg:64-max:96": "QmbxqsXm4CiRQRkorUsLRCB3jDFUsTLf4yRDkb8iYCXdwA",
};

for (const [chunker, expected] of Object.entries(rabinCids)) {
  test(`a file that is split by ${chunker} has the CID of the reference`, async () => {
    const entry = { path: "f", kind: "file", body: once(goRandom(20_000, 1)) } as const;
    const [event] = await Array.fromAsync(hashOnly(once<AddEntry>(entry), addSettings({ chunker })));
    assert.equal(String(event?.built?.cid), expected);
  });
}
