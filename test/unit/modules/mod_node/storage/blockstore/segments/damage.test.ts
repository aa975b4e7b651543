import assert from "node:assert/strict";
import { readdir, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { SegmentFs } from "#node/storage/blockstore/segments/files.ts";
import { readSection, recordSections, sectionHead, segmentHeader } from "#node/storage/blockstore/segments/format.ts";
import {
  openSegmentStore,
  type SegmentStore,
  type SegmentStoreOptions,
} from "#node/storage/blockstore/segments/store.ts";
import type { Block } from "#node/storage/blockstore/store.ts";
import {
  as,
  contentsOf,
  dagPb,
  noise,
  sample,
  samples,
} from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";
import { copyOf, folder, systemError, watched } from "./workshop.ts";

const car = (at: string, segment = 1) => join(at, `0000000${segment}.car`);

async function made(blocks: readonly Block[], options?: SegmentStoreOptions): Promise<string> {
  const at = folder();
  const store = await openSegmentStore(at, options);
  await store.put(blocks);
  await store.close();
  return at;
}

interface Opened {
  readonly contentBefore: ReadonlyMap<string, string>;
  readonly notices: string;
}

/** Opens the folder, reads its content, and closes it. */
async function opened(
  at: string,
  options: SegmentStoreOptions = {},
  look: (store: SegmentStore) => Promise<unknown> = async () => {},
): Promise<Opened> {
  const notices: string[] = [];
  const store = await openSegmentStore(at, { verifyOnRead: true, ...options, onNotice: (text) => notices.push(text) });
  await look(store);
  const contentBefore = new Map<string, string>();
  for await (const cid of store.keys()) {
    const bytes = await store.get(cid).catch(() => undefined);
    if (bytes !== undefined) contentBefore.set(cid.toString(), Buffer.from(bytes).toString("base64"));
  }
  await store.close();
  return { contentBefore: contentBefore, notices: notices.join("\n") };
}

interface SectionRange {
  readonly start: number;
  readonly data: number;
  readonly end: number;
}

/** Returns the offsets of the sections in a segment. */
function sectionsOf(bytes: Uint8Array): SectionRange[] {
  const sectionRanges: SectionRange[] = [];
  for (let start = segmentHeader.length; start < bytes.length; ) {
    const section = readSection(bytes, start);
    assert.ok(section);
    const data = start + section.headLength;
    sectionRanges.push({ start, data, end: data + section.length });
    start = data + section.length;
  }
  return sectionRanges;
}

async function edited(at: string, edit: (bytes: Buffer) => Buffer | undefined, segment = 1): Promise<void> {
  const bytes = await readFile(car(at, segment));
  await writeFile(car(at, segment), edit(bytes) ?? bytes);
}

async function lost(at: string): Promise<Buffer[]> {
  const target = join(at, "lost+found");
  const names = await readdir(target).catch(() => []);
  return Promise.all(names.sort().map((name) => readFile(join(target, name))));
}

const expectContent = ({ contentBefore }: Opened, blocks: readonly Block[], what: string) =>
  assert.deepEqual([...contentBefore.keys()].sort(), blocks.map(({ cid }) => cid.toString()).sort(), what);

test("a wrong byte in a length costs no block, whichever section it is in", async () => {
  const blocks = [...samples(2), ...samples(2, 300, 10), ...samples(2, 40_000, 20)];
  const at = await made(blocks);
  const sections = sectionsOf(await readFile(car(at)));
  assert.equal(sections.length, blocks.length);
  for (const [index, { start }] of sections.entries()) {
    for (const value of [0, 1, 0x7f, 0xff]) {
      const copy = await copyOf(at, { index: false });
      await edited(copy, (bytes) => void (bytes[start] = bytes[start] === value ? value + 2 : value));
      const found = await opened(copy);
      expectContent(found, blocks, `section ${index} with ${value}`);
      assert.match(found.notices, new RegExp(`00000001.car is damaged at byte ${start}: the length there is wrong`));
      assert.deepEqual(await lost(copy), []);
    }
  }
});

test("a wrong byte anywhere costs one block at most, and its bytes are saved", async () => {
  const blocks = samples(12, 150);
  const at = await made(blocks, { segmentBytes: 1000 });
  assert.deepEqual((await readdir(at)).filter((name) => name.endsWith(".car")).length, 3);
  for (const segment of [1, 3]) {
    const whole = await readFile(car(at, segment));
    const sections = sectionsOf(whole);
    for (const { start, data, end } of sections.slice(1)) {
      for (let offset = start; offset < end; offset += offset < data ? 3 : 60) {
        const copy = await copyOf(at, { index: false });
        await edited(copy, (bytes) => void (bytes[offset] = (bytes[offset] as number) ^ 0x41), segment);
        const { contentBefore } = await opened(copy);
        const own = contentsOf(blocks);
        const missing = [...own.keys()].filter((key) => contentBefore.get(key) !== own.get(key));
        assert.ok(missing.length <= 1, `${missing.length} are lost to byte ${offset} of segment ${segment}`);
        // A sealed segment is not changed; the end of the last one is saved elsewhere.
        const bytes = whole.subarray(data, end);
        const savedFiles = Buffer.concat([await readFile(car(copy, segment)), ...(await lost(copy))]);
        if (offset < data) assert.ok(savedFiles.includes(bytes), `byte ${offset} of segment ${segment}`);
        else assert.ok(savedFiles.includes(bytes.subarray(0, offset - data)));
      }
    }
  }
});

test("blocks after several damaged ranges are found", async () => {
  const blocks = samples(40, 500);
  const at = await made(blocks);
  const sections = sectionsOf(await readFile(car(at)));
  const spoilt = [5, 6, 20, 39];
  await edited(at, (bytes) => {
    for (const index of spoilt) bytes.fill(0xee, sections[index]?.start, (sections[index]?.start ?? 0) + 60);
    return undefined;
  });
  await rm(join(at, "index"), { recursive: true });
  const found = await opened(at);
  expectContent(
    found,
    blocks.filter((_, index) => !spoilt.includes(index)),
    "all others",
  );
  assert.match(
    found.notices,
    /is damaged from byte \d+ to \d+ .*, 1\.1 kB without a block: a copy is in lost\+found\//,
  );
  assert.match(found.notices, /ended in an incomplete write: \d+ bytes .* are now in lost\+found\//);
  const savedFiles = Buffer.concat(await lost(at));
  for (const index of spoilt) {
    assert.ok(
      savedFiles.includes(Buffer.from((blocks[index] as Block).bytes.subarray(100))),
      `bytes of block ${index}`,
    );
  }
});

test("a tail of zeros is cut off, a torn tail is saved, and writing continues", async () => {
  const blocks = samples(5, 200);
  const at = await made(blocks);
  const { size } = await stat(car(at));
  const zeros = await copyOf(at);
  await truncate(car(zeros), size + 100_000);
  const cut = await opened(zeros, {}, (store) => store.put([sample(9)]));
  assert.match(cut.notices, /ended in an incomplete write: 100000 bytes .* were zeros and were removed/);
  assert.deepEqual(await lost(zeros), []);
  expectContent(cut, [...blocks, sample(9)], "behind zeros");

  const torn = await copyOf(at, { index: false });
  const last = sectionsOf(await readFile(car(at))).at(-1) as SectionRange;
  await truncate(car(torn), size - 50);
  const left = await opened(torn, {}, (store) => store.put([sample(9)]));
  expectContent(left, [...blocks.slice(0, -1), sample(9)], "behind a torn block");
  assert.deepEqual(await lost(torn), [(await readFile(car(at))).subarray(last.start, size - 50)]);
  const again = await opened(torn);
  assert.equal(again.notices, "");
  expectContent(again, [...blocks.slice(0, -1), sample(9)], "opened again");
});

test("a tail that cannot be saved stays, and the log continues after it", async () => {
  const blocks = samples(5, 200);
  const at = await made(blocks);
  await edited(at, (bytes) => Buffer.concat([bytes, Buffer.from(noise(5000, 3))]));
  const full = watched((operation, path) => {
    if (operation === "create" && path.includes("lost+found")) throw systemError("ENOSPC");
  });
  const first = await opened(at, { fs: full }, (store) => store.put([sample(9)]));
  assert.match(first.notices, /5000 bytes .* stay in the file, because they cannot be moved: ENOSPC/);
  expectContent(first, [...blocks, sample(9)], "behind the tail");
  await rm(join(at, "index"), { recursive: true });
  const second = await opened(at);
  expectContent(second, [...blocks, sample(9)], "restored");
  assert.deepEqual(await lost(at), [Buffer.from(noise(5000, 3))]);
});

/** A raw block with these bytes. */
async function rawBlock(bytes: Uint8Array): Promise<Block> {
  const { makeBlock, blockFormat } = await import("#node/storage/blockstore/make_block.ts");
  return makeBlock(bytes, blockFormat("raw", "sha2-256", -1));
}

test("a damaged block that contains an archive removes no other block", async () => {
  const victims = samples(3, 200);
  const tombstones = recordSections(victims.map(({ cid }) => ({ multihash: cid.multihash.bytes, forms: [] })));
  const archive = Buffer.concat([noise(300, 1), ...tombstones.map(({ bytes }) => bytes), noise(300, 2)]);
  const trap = await rawBlock(archive);
  const at = await made([...victims, trap, sample(50)]);
  const target = sectionsOf(await readFile(car(at)))[3] as SectionRange;
  // Neither its length nor its CID can be trusted.
  await edited(at, (bytes) => void bytes.fill(0xff, target.start, target.start + 20));
  await rm(join(at, "index"), { recursive: true });
  expectContent(await opened(at), [...victims, sample(50)], "all but the trap");
});

test("a wrong bit in the length of a block that contains an archive removes no other block from a sealed segment", async () => {
  const victims = samples(3, 200);
  const tombstones = recordSections(victims.map(({ cid }) => ({ multihash: cid.multihash.bytes, forms: [] })));
  const forged = Buffer.concat(tombstones.map(({ bytes }) => bytes));
  // The block ends in a forged section and a whole one, 1024 bytes together. Without the bit that
  // stands for 1024, the block would end where they begin.
  const { cid, bytes } = await rawBlock(noise(1024 - forged.length - 38, 3));
  const archive = Buffer.concat([forged, sectionHead(cid.bytes, bytes.length), bytes]);
  assert.equal(archive.length, 1024);
  const trap = await rawBlock(Buffer.concat([noise(2 * 1024, 1), archive]));
  const others = samples(30, 300, 100);
  const at = await made([...victims, trap, ...others], { segmentBytes: 6000 });
  const target = sectionsOf(await readFile(car(at)))[3] as SectionRange;
  await edited(at, (file) => {
    assert.equal((file[target.start + 1] as number) & 8, 8);
    file[target.start + 1] = (file[target.start + 1] as number) ^ 8;
  });
  await rm(join(at, "index"), { recursive: true });
  expectContent(await opened(at), [...victims, trap, ...others], "nothing is lost: its CID tells where the trap ends");
});

/**
 * Counts the bytes that are read, and the turns of the event loop between the reads. A loop of
 * reads that never lets other work run has none.
 */
function counting() {
  const seen = { bytes: 0, turns: 0 };
  const real = watched(() => {});
  const fs: SegmentFs = {
    ...real,
    async open(path, create) {
      const file = await real.open(path, create);
      return {
        ...file,
        async read(into, at) {
          setImmediate(() => {
            seen.turns += 1;
          });
          const got = await file.read(into, at);
          if (path.endsWith(".car")) seen.bytes += got;
          return got;
        },
      };
    },
  };
  return { fs, seen };
}

test("a search reads a bounded number of bytes, and other work continues meanwhile", async () => {
  const one = sample(1).cid.bytes;
  // Each looks like the head of a section of a hundred thousand bytes.
  const head = Buffer.concat([Buffer.from([0xa0, 0x8d, 0x06]), one]);
  const hostile = Buffer.concat(Array.from({ length: 10_000 }, () => head));
  const trap = await rawBlock(hostile);
  const at = await made([sample(1), trap, sample(2)]);
  const target = sectionsOf(await readFile(car(at)))[1] as SectionRange;
  await edited(at, (bytes) => void bytes.fill(0xff, target.start, target.start + 20));
  await rm(join(at, "index"), { recursive: true });
  const { fs, seen } = counting();
  await opened(at, { fs });
  const { bytes: read, turns } = seen;
  // Without a bound, a search would read the rest of the block, or up to 100,000 bytes of it, for
  // each of the ten thousand heads.
  assert.ok(read < 450_000_000, `${read} bytes were read`);
  assert.ok(turns > 100, `${turns} turns of the loop`);
  const bytes = await readFile(car(at));
  assert.ok(Buffer.concat([bytes, ...(await lost(at))]).includes(Buffer.from(sample(2).bytes)));
});

test("a start that needs an unreadable segment names the file and the remedy", async () => {
  const at = await made([sample(1), sample(2)]);
  await rm(join(at, "index"), { recursive: true });
  let broken = true;
  const fs = watched((operation, path) => {
    if (broken && operation === "read" && path.endsWith("00000001.car")) throw systemError("EIO");
  });
  await assert.rejects(opened(at, { fs }), {
    code: "SEGMENT_UNREADABLE",
    message:
      /00000001\.car cannot be read: .*EIO.*\. No block was changed\. Copy it .* replace the file with the copy, and start again/,
  });
  broken = false;
  expectContent(await opened(at, { fs }), [sample(1), sample(2)], "all of it");
});

test("an unreadable segment does not prevent the compaction of others", async () => {
  const blocks = samples(30, 300);
  let broken = false;
  const fs = watched((operation, path) => {
    if (broken && operation === "read" && path.endsWith("00000001.car")) throw systemError("EIO");
  });
  const at = await made(blocks, { segmentBytes: 3600 });
  const names = async () => (await readdir(at)).filter((name) => name.endsWith(".car")).sort();
  assert.deepEqual(await names(), ["00000001.car", "00000002.car", "00000003.car"]);
  const found = await opened(at, { fs, segmentBytes: 3600 }, async (store) => {
    await store.delete([...blocks.slice(0, 8), ...blocks.slice(11, 19)].map(({ cid }) => cid));
    broken = true;
    await store.compact();
    broken = false;
  });
  assert.match(found.notices, /00000001.car cannot be read: EIO/);
  expectContent(found, [...blocks.slice(8, 11), ...blocks.slice(19)], "what was not deleted");
  const left = await names();
  assert.ok(left.includes("00000001.car") && !left.includes("00000002.car"), left.join());
});

test("a damaged segment is compacted: live blocks are moved, and the rest is saved", async () => {
  const blocks = samples(30, 300);
  const at = await made(blocks);
  const sections = sectionsOf(await readFile(car(at)));
  const dead = blocks.slice(0, 20).map(({ cid }) => cid);
  await edited(at, (bytes) => void (bytes[sections[7]?.start as number] = 0x05));
  const found = await opened(at, {}, async (store) => {
    await store.delete(dead);
    await store.compact();
  });
  expectContent(found, blocks.slice(20), "what was not deleted");
  assert.deepEqual(
    (await readdir(at)).filter((name) => name.endsWith(".car")),
    ["00000002.car"],
  );
});

/**
 * Returns a section with this data. Its CID has version 1, the codec of raw blocks, and these bytes
 * as its multihash.
 */
function forged(multihash: readonly number[], data: readonly number[]): Buffer {
  const length = 2 + multihash.length + data.length;
  return Buffer.from([
    ...(length < 128 ? [length] : [(length & 127) | 128, length >> 7]),
    1,
    0x55,
    ...multihash,
    ...data,
  ]);
}

const forgedRecord = (payload: readonly number[]) => forged([0, payload.length, ...payload], payload);

test("a damaged block whose bytes look like records does not prevent opening the store", async () => {
  const long = Array.from({ length: 2500 }, () => 7);
  const traps: Record<string, Buffer> = {
    "a multihash that is cut off": forgedRecord([0x22, 0x12, 0x20, 1, 2, 3, 4, 5, 6]),
    "more forms than there are": forgedRecord([2, 0x12, 0x00, 0x7f, 1, 1, 1, 1, 1]),
    "as many forms as no array holds": forgedRecord([2, 0x12, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1]),
    "no varint": forgedRecord(Array.from({ length: 11 }, () => 0xff)),
    "a multihash without bytes": forgedRecord([0, 1, 1, 0, 1, 1, 0, 1, 1]),
    "a multihash that is none": forgedRecord([9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 1]),
    "an identity hash in other words, too long for a key": forged([0x80, 0, 0xc4, 0x13, ...long], long),
  };
  for (const [what, bytes] of Object.entries(traps)) {
    const trap = await rawBlock(Buffer.concat([noise(300, 1), bytes, noise(300, 2)]));
    const at = await made([sample(1), trap, sample(2)]);
    const target = sectionsOf(await readFile(car(at)))[1] as SectionRange;
    await edited(at, (bytes) => void bytes.fill(0xff, target.start, target.start + 20));
    await rm(join(at, "index"), { recursive: true });
    expectContent(await opened(at), [sample(1), sample(2)], what);
    expectContent(await opened(at), [sample(1), sample(2)], `${what}, opened again`);
  }
});

test("a block that is put again replaces a damaged copy in each of its forms, also after a crash", async () => {
  const blocks = samples(3, 1000);
  const [sound, bad, other] = blocks as [Block, Block, Block];
  const at = await made(blocks, { verifyOnRead: true });
  const file = await readFile(car(at));
  for (const { bytes } of [bad, other]) {
    const middle = file.indexOf(bytes) + 500;
    file[middle] = (file[middle] as number) ^ 1;
  }
  await writeFile(car(at), file);
  const notices: string[] = [];
  const store = await openSegmentStore(at, { verifyOnRead: true, onNotice: (text) => notices.push(text) });
  await assert.rejects(store.get(bad.cid), { code: "BLOCK_CORRUPT", message: /add the same content again/ });
  const reports: string[] = [];
  const asNode = { cid: as(other.cid, dagPb), bytes: other.bytes };
  await store.put([sound, bad, bad, asNode], { onNew: (cid) => reports.push(String(cid)) });
  await store.sync();
  assert.deepEqual(reports, [String(asNode.cid)]);
  assert.equal(notices.filter((text) => text.includes("is stored again")).length, 2);
  const { length } = await readFile(car(at));
  assert.ok(length > file.length + 2000 && length < file.length + 2300, `${length - file.length} bytes more`);
  // Nothing is written for intact blocks.
  await store.put([...blocks, asNode]);
  await store.sync();
  assert.equal((await readFile(car(at))).length, length);
  const killed = [await copyOf(at), await copyOf(at, { index: false })];
  await store.close();
  for (const folder of [at, ...killed])
    assert.deepEqual((await opened(folder)).contentBefore, contentsOf([...blocks, asNode]));
});
