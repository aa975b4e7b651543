import assert from "node:assert/strict";
import { test } from "node:test";
import { CID } from "multiformats/cid";
import type { Directory, OnStored } from "#node/content/mfs/directory.ts";
import { PlainDirectory } from "#node/content/mfs/plain_directory.ts";
import { ShardedDirectory } from "#node/content/mfs/sharded_directory.ts";
import { type Built, cidOf, defaultCid } from "#node/content/unixfs/build.ts";
import { buildDirectory } from "#node/content/unixfs/directory.ts";
import { type UnixfsNode, unixfsNode } from "#node/content/unixfs/node.ts";
import { sha256 } from "#node/formats/cid/hashes.ts";
import { encodePb, type PbLink } from "#node/formats/dag_pb/dag_pb.ts";
import { writeField } from "#node/formats/protobuf/fields.ts";
import { encodeUnixfs } from "#node/formats/unixfs/format.ts";

const empty = encodePb({ data: encodeUnixfs({ type: "Directory" }), links: [] });

/** Random numbers below `below`, the same in every run. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return state % below;
  };
}

async function linkTo(name: string, version: number): Promise<PbLink> {
  return { name, size: version * 1000 + 1, cid: await cidOf(0x55, Buffer.from(`${name} ${version}`), defaultCid) };
}

class Shelf {
  readonly blocks = new Map<string, Uint8Array>();
  reads = 0;

  readonly read = async (cid: CID): Promise<Uint8Array> => {
    this.reads += 1;
    return this.blocks.get(cid.toString()) as Uint8Array;
  };

  async write(directory: Directory): Promise<Built> {
    const settled: OnStored[] = [];
    const put = ({ cid, bytes }: { cid: CID; bytes: Uint8Array }) => void this.blocks.set(cid.toString(), bytes);
    const built = await directory.write(defaultCid, put, settled);
    for (const settle of settled) settle();
    return built;
  }
}

const built = (links: readonly PbLink[], sharded: boolean) =>
  buildDirectory(links, { ...defaultCid, sharded }, () => undefined);

const same = (one: Built, other: Built) =>
  assert.deepEqual([one.cid.toString(), one.size], [other.cid.toString(), other.size]);

for (const sharded of [false, true]) {
  test(`a ${sharded ? "sharded" : "plain"} directory that was changed entry by entry equals one that was built at once`, async () => {
    const shelf = new Shelf();
    const random = numbers(7);
    const model = new Map<string, PbLink>();
    let directory: Directory = sharded ? ShardedDirectory.from([], defaultCid, shelf.read) : new PlainDirectory(empty);
    for (let round = 1; round <= 60; round += 1) {
      // It grows at first, and shrinks in the end.
      const removing = round > 40 ? 8 : 3;
      for (let change = 0; change < 25; change += 1) {
        const name = `${random(2) === 0 ? "naïve" : "n"}-${random(400)}`;
        const known = model.get(name);
        assert.equal(String((await directory.find(name))?.cid), String(known?.cid));
        if (random(10) < removing) {
          assert.equal(directory.remove(name), model.delete(name));
        } else {
          const link = await linkTo(name, round);
          directory.set(link);
          model.set(name, link);
        }
      }
      const written = await shelf.write(directory);
      if (model.size > 0) same(written, await built([...model.values()], sharded));
      if (round % 10 !== 0) continue;
      const bytes = shelf.blocks.get(written.cid.toString()) as Uint8Array;
      const node = unixfsNode(written.cid, bytes) as UnixfsNode;
      directory = sharded ? ShardedDirectory.open(node, shelf.read) : new PlainDirectory(bytes);
    }
  });
}

test("a link that was found does not change with the directory", async () => {
  const directory = new PlainDirectory(empty);
  for (const name of ["b", "c", "d"]) directory.set(await linkTo(name, 1));
  const found = (await directory.find("c")) as PbLink;
  const before = CID.decode(found.cid.bytes.slice()).toString();
  directory.set(await linkTo("a", 1));
  directory.remove("b");
  assert.equal(CID.decode(found.cid.bytes).toString(), before);
});

test("stored blocks of a directory do not change with it", async () => {
  const shelf = new Shelf();
  const directory = new PlainDirectory(empty);
  directory.set(await linkTo("b", 1));
  const first = await shelf.write(directory);
  directory.set(await linkTo("a", 1));
  await shelf.write(directory);
  const bytes = shelf.blocks.get(first.cid.toString()) as Uint8Array;
  assert.equal(String(await cidOf(0x70, bytes, defaultCid)), String(first.cid));
});

test("a directory in a form that is not canonical can be read, and is canonical after a change", async () => {
  const links = [await linkTo("b", 1), await linkTo("a", 1)];
  const data = encodeUnixfs({ type: "Directory" });
  const fields = links.map((link) => encodePb({ data: undefined, links: [link] }));
  const head = new Uint8Array(2 + data.length);
  writeField(head, 0, 0x0a, data);
  const directory = new PlainDirectory(Buffer.concat([head, ...fields]));
  assert.deepEqual(
    [...directory.links()].map(({ name }) => name),
    ["a", "b"],
  );
  const third = await linkTo("c", 1);
  directory.set(third);
  same(await new Shelf().write(directory), await built([...links, third], false));
});

test("a repeated entry is found once, and setting or removing it removes both", async () => {
  const twice = [await linkTo("a", 1), await linkTo("a", 2), await linkTo("b", 1)];
  const directory = new PlainDirectory(encodePb({ data: encodeUnixfs({ type: "Directory" }), links: twice }));
  assert.equal(String((await directory.find("a"))?.cid), String(twice[0]?.cid));
  directory.remove("a");
  same(await new Shelf().write(directory), await built([twice[2] as PbLink], false));
});

test("a change of a sharded directory reads only the shards on the path to the name", async () => {
  const shelf = new Shelf();
  const links = await Promise.all(Array.from({ length: 3000 }, (_, at) => linkTo(`entry ${at}`, 1)));
  const whole = await shelf.write(ShardedDirectory.from(links, defaultCid, shelf.read));
  const node = unixfsNode(whole.cid, shelf.blocks.get(whole.cid.toString()) as Uint8Array) as UnixfsNode;
  const directory = ShardedDirectory.open(node, shelf.read);
  await directory.find("entry 1000");
  directory.set(await linkTo("entry 1000", 2));
  assert.ok(shelf.reads <= 2, `${shelf.reads} blocks were read`);
  const changed = links.map((link) => (link.name === "entry 1000" ? { ...link } : link));
  changed[1000] = await linkTo("entry 1000", 2);
  same(await shelf.write(directory), await built(changed, true));
});

test("shards of an unknown width or hash function are rejected, and not damaged", async () => {
  const cid = await cidOf(0x70, empty, { ...defaultCid, hash: sha256 });
  const shard = (fanout: number, hashType: number): UnixfsNode => ({
    cid,
    length: 0,
    links: [],
    unixfs: { type: "HAMTShard", fanout, hashType },
  });
  const { read } = new Shelf();
  assert.throws(() => ShardedDirectory.open(shard(100, 0x22), read), /100 slots/);
  assert.throws(() => ShardedDirectory.open(shard(256, 0x23), read), /only murmur3 supported as hash function/);
});
