/**
 * Damages the files of a block store at random, and checks which blocks are lost: only those that
 * were damaged.
 */
import { randomBytes, randomInt } from "node:crypto";
import { cp, readdir, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { blockFormat, makeBlock } from "#node/storage/blockstore/make_block.ts";
import { readSection, segmentHeader } from "#node/storage/blockstore/segments/format.ts";
import { openSegmentStore } from "#node/storage/blockstore/segments/store.ts";
import type { Block } from "#node/storage/blockstore/store.ts";

export interface DamageOptions {
  /** An empty folder. */
  readonly folder: string;
  readonly rounds: number;
  readonly report?: ((line: string) => void) | undefined;
}

const blockCount = 120;
const segmentBytes = 60_000;
/** Number of blocks that one piece of damage can cost. */
const costs = { flip: 1, burst: 3, cut: Number.POSITIVE_INFINITY, zeros: 0, noise: 0, index: 0 } as const;
type Kind = keyof typeof costs;

/** Resolves to what is wrong; empty if nothing is. */
export async function damagedFiles({ folder, rounds, report }: DamageOptions): Promise<string[]> {
  const blocks = await Promise.all(Array.from({ length: blockCount }, anyBlock));
  const sound = join(folder, "sound");
  const store = await openSegmentStore(sound, { segmentBytes });
  await store.put(blocks);
  await store.close();
  const wrong: string[] = [];
  let lost = 0;
  for (let round = 0; round < rounds && wrong.length === 0; round += 1) {
    const at = join(folder, `round-${round}`);
    await cp(sound, at, { recursive: true, preserveTimestamps: true });
    const kinds = await damage(at);
    const before = await Promise.all((await segmentsIn(at)).map((name) => readFile(join(at, name))));
    const limit = kinds.reduce((sum, kind) => sum + costs[kind], 0);
    const missing = await missingIn(at, blocks);
    const again = await missingIn(at, blocks);
    lost += missing.length;
    const what = `round ${round} (${kinds.join(", ")})`;
    if (missing.length > limit) wrong.push(`${what}: ${missing.length} blocks are gone`);
    if (again.length !== missing.length) wrong.push(`${what}: ${missing.length}, then ${again.length} blocks are gone`);
    const contents = Buffer.concat(await everything(at));
    for (const { cid, bytes } of blocks) {
      const own = Buffer.from(bytes);
      if (before.some((file) => file.includes(own)) && !contents.includes(own)) wrong.push(`${what}: cut off ${cid}`);
    }
    await rm(at, { recursive: true });
  }
  report?.(`${rounds} damaged stores, ${lost} of ${rounds * blockCount} blocks lost, ${wrong.length} wrong`);
  await rm(sound, { recursive: true });
  return wrong;
}

async function anyBlock(): Promise<Block> {
  const [format, hash] = randomInt(4) === 0 ? ["protobuf", "sha2-512"] : ["raw", "sha2-256"];
  return makeBlock(randomBytes(20 + randomInt(4000)), blockFormat(format as string, hash as string, -1));
}

const segmentsIn = async (at: string): Promise<string[]> =>
  (await readdir(at)).filter((name) => name.endsWith(".car")).sort();

async function everything(at: string): Promise<Buffer[]> {
  const aside = join(at, "lost+found");
  const names = await readdir(aside).catch(() => []);
  const paths = [...(await segmentsIn(at)).map((name) => join(at, name)), ...names.map((name) => join(aside, name))];
  return Promise.all(paths.map((path) => readFile(path)));
}

/** Returns the blocks that cannot be read. */
async function missingIn(at: string, blocks: readonly Block[]): Promise<Block[]> {
  const store = await openSegmentStore(at, { segmentBytes, verifyOnRead: true });
  const missing: Block[] = [];
  for (const block of blocks) {
    const bytes = await store.get(block.cid).catch(() => undefined);
    if (bytes === undefined || Buffer.compare(bytes, block.bytes) !== 0) missing.push(block);
  }
  await store.close();
  return missing;
}

/** Damages one to three positions. Returns the kinds of damage. */
async function damage(at: string): Promise<Kind[]> {
  const segments = await segmentsIn(at);
  const kinds: Kind[] = [];
  if (randomInt(5) > 0) await rm(join(at, "index"), { recursive: true });
  else {
    const data = join(at, "index", "data.mdb");
    await truncate(data, randomInt((await stat(data)).size));
  }
  kinds.push("index");
  for (let count = 1 + randomInt(3); count > 0; count -= 1) {
    const name = segments[randomInt(segments.length)] as string;
    const last = name === segments.at(-1);
    const kind = (["flip", "flip", "flip", "burst", ...(last ? (["cut", "zeros", "noise"] as const) : [])] as const)[
      randomInt(last ? 7 : 4)
    ] as Kind;
    await edit(join(at, name), kind);
    kinds.push(kind);
  }
  return kinds;
}

async function edit(path: string, kind: Kind): Promise<void> {
  const bytes = await readFile(path);
  const offset = offsetIn(bytes);
  if (kind === "flip") bytes[offset] = (bytes[offset] as number) ^ (1 + randomInt(255));
  if (kind === "burst") randomBytes(Math.min(60, bytes.length - offset)).copy(bytes, offset);
  if (kind === "cut") return truncate(path, segmentHeader.length + randomInt(bytes.length - segmentHeader.length));
  if (kind === "zeros") return writeFile(path, Buffer.concat([bytes, Buffer.alloc(1 + randomInt(50_000))]));
  if (kind === "noise") return writeFile(path, Buffer.concat([bytes, randomBytes(1 + randomInt(50_000))]));
  await writeFile(path, bytes);
}

/** Returns an offset in the sections; every second time, in the head of a section. */
function offsetIn(bytes: Uint8Array): number {
  const any = segmentHeader.length + randomInt(bytes.length - segmentHeader.length);
  if (randomInt(2) === 0) return any;
  try {
    for (let start = segmentHeader.length; start < bytes.length; ) {
      const section = readSection(bytes, start);
      if (section === undefined) break;
      const end = start + section.headLength + section.length;
      if (end > any) return start + randomInt(section.headLength);
      start = end;
    }
  } catch {
    // This file was damaged before.
  }
  return any;
}
