/**
 * Changed keys of `Import` apply to the next call, also when a profile has set them. The CIDs are
 * those of Kubo 0.43.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type AddTreeOptions, type Node, openNode } from "modhost/node";
import { shardingAtStart } from "#node/content/adder/import_config.ts";
import { memoryNode } from "../api/support.ts";

const abcdef = async (node: Node, options: AddTreeOptions = {}) =>
  String((await node.add({ path: "a", content: "abcdef" }, { ...options, progress: undefined })).cid);

test("imports go by the configuration where a call does not say it", async (t) => {
  const node = await memoryNode(t);
  const steps: readonly (readonly [key: string, value: unknown, cid: string, options?: AddTreeOptions])[] = [
    ["Import.CidVersion", 1, "bafkreif66v7mp5j2nval5nsau6akmooihpbjvsfjqfxr7rwfy3onspchee"],
    ["Import.CidVersion", 1, "QmXn9N1VCotpykz9s6YKs24miLHSyhMCEXBLPLua6znean", { cidVersion: 0 }],
    ["Import.UnixFSRawLeaves", false, "bafybeiemiem6mwzz25ntnsxljpdssxctdbluedzskrnndvymjrkcxghw2m"],
    ["Import.UnixFSChunker", "size-2", "bafybeidbncqbnegtbzsajuyzcxehneobhexk44t3rsaoa2jsokzhb5dikq"],
    ["Import.UnixFSFileMaxLinks", 2, "bafybeice5y5otypd4trixcdm2k4y446vcjucey2vudstena3j2opnjdsxu"],
    ["Import.UnixFSDAGLayout", "trickle", "bafybeihfcbgvjmkkgb7k52cbyzlshxxhnyxzzijdzl3gzxlvatbwwa4ogu"],
    [
      "Import.UnixFSDAGLayout",
      "trickle",
      "bafybeice5y5otypd4trixcdm2k4y446vcjucey2vudstena3j2opnjdsxu",
      { trickle: false },
    ],
    [
      "Import.HashFunction",
      "sha2-512",
      "bafybgqfgwxamg5ldxgkp3a6vlbo55wyf25t7ia5o34bl2iewddis5grjkdu6nfrzyq3tdynr3ng4tmbrendjadl323vf5supcyf6kfiblysk4",
    ],
  ];
  for (const [key, value, cid, options] of steps) {
    await node.config.set(key, value);
    assert.equal(await abcdef(node, options), cid, `${key} ${value}`);
  }
  await node.files.mkdir("/d");
  const made =
    "bafybgqe5nnhmihs4pga4k4xhbnfzs24sxuhxjdirpqamhpyx5zhst52pkrnfk7vjdmr7g7lopssextjnqmkc4ygusjcultofxzma3wsiifrxa";
  assert.equal(String((await node.files.stat("/d")).cid), made);
  const plain = "QmXn9N1VCotpykz9s6YKs24miLHSyhMCEXBLPLua6znean";
  assert.equal(await abcdef(node, { importDefaults: false }), plain);
});

test("so does the way directories are sharded, where a call goes by the size", async (t) => {
  const node = await memoryNode(t);
  const tree = ["a", "b", "c", "d"].map((name) => ({ path: `d/${name}`, content: "x" }));
  const fanout = async (options: AddTreeOptions) => {
    let root = "";
    for await (const { cid } of node.addAll(tree, { ...options, progress: undefined })) root = String(cid);
    const { cid } = await node.lowLevel.resolve(root);
    return openNode(cid, await node.lowLevel.reader({})(cid)).unixfs.fanout;
  };
  await node.config.set("Import.UnixFSDirectoryMaxLinks", 3);
  assert.equal(await fanout({ sharding: "by size" }), 256);
  assert.equal(await fanout({}), undefined);
  await node.config.set("Import.UnixFSHAMTDirectoryMaxFanout", 8);
  assert.equal(await fanout({ sharding: "by size" }), 8);
  assert.equal(await fanout({ sharding: "by size", maxDirectoryLinks: 0 }), undefined);
  await node.config.set("Import.UnixFSHAMTDirectorySizeEstimation", "nothing");
  // As in the reference, calls ignore the invalid value, and the next start reports it.
  assert.equal(await fanout({ sharding: "by size" }), 8);
  const { config } = node.lowLevel.repo;
  assert.throws(() => shardingAtStart(config), /Import.UnixFSHAMTDirectorySizeEstimation must be one of/);
  for (const [key, value, reason] of [
    ["CidVersion", 2, /^Import.CidVersion must be 0 or 1, got 2$/],
    ["UnixFSFileMaxLinks", 0, /^Import.UnixFSFileMaxLinks must be positive, got 0$/],
    ["UnixFSDirectoryMaxLinks", -1, /^Import.UnixFSDirectoryMaxLinks must be non-negative, got -1$/],
    ["UnixFSChunker", "size-0", /^Import.UnixFSChunker invalid format: "size-0" \(expected "size-<bytes>", /],
    ["HashFunction", "odd", /^Import.HashFunction unrecognized: "odd"$/],
  ] as const) {
    await node.config.set(`Import.${key}`, value);
    assert.throws(() => shardingAtStart(config), { message: reason });
    await node.config.set(`Import.${key}`, null);
  }
});

test("a profile sets all of it", async (t) => {
  const node = await memoryNode(t);
  await node.config.profiles.apply("unixfs-v1-2025");
  const { cid } = await node.add({ path: "a", content: new Uint8Array(1_048_577) });
  assert.equal(cid.version, 1);
  assert.equal((await node.lowLevel.blocks.findStored(cid))?.length, 104);
  await node.config.profiles.apply("unixfs-v0-2015");
  assert.equal(await abcdef(node), "QmXn9N1VCotpykz9s6YKs24miLHSyhMCEXBLPLua6znean");
});
