/** Harmful content, as blocks that are stored as they are. */
import { CID } from "multiformats/cid";
import { create as createDigest } from "multiformats/hashes/digest";
import { buildOrdered, entryKey } from "#node/content/unixfs/directory.ts";
import { multihash, sha256 } from "#node/formats/cid/hashes.ts";
import { type DagPbLink, encodeDagPb } from "#node/formats/dag_pb/pb_object.ts";
import { encodeUnixfs, type Unixfs } from "#node/formats/unixfs/format.ts";
import type { Node } from "#node/index.ts";
import { catastrophes } from "./rules.ts";

export interface ContentSize {
  /** Levels of the chains. */
  readonly levels: number;
  /** Entries of the directory that is a HAMT. */
  readonly entries: number;
  /** Number of blocks of 1 MiB that a path leads through. */
  readonly heavy: number;
  /** Bytes of a document of nested brackets. */
  readonly abyss: number;
}

/** CIDs and names by their description. */
export type Roots = Readonly<Record<string, string>>;

const RAW = 0x55;
const DAG_CBOR = 0x71;
const DAG_JSON = 0x0129;
const DAG_PB = 0x70;
const MIB = 2 ** 20;
/** Levels of graphs that double with each level. */
const DOUBLED = 33;
const BATCH = 1000;

interface Block {
  readonly cid: CID;
  readonly bytes: Uint8Array;
}

class Maker {
  readonly #store: Node["lowLevel"]["blocks"];
  #pending: Block[] = [];
  #bytes = 0;
  /** A block of a hundred letters. */
  leaf!: CID;

  constructor({ lowLevel }: Node) {
    this.#store = lowLevel.blocks;
  }

  async put(codec: number, bytes: Uint8Array): Promise<CID> {
    const cid = CID.createV1(codec, await multihash(sha256, bytes));
    await this.take({ cid, bytes });
    return cid;
  }

  async take(block: Block): Promise<void> {
    this.#pending.push(block);
    this.#bytes += block.bytes.length;
    if (this.#pending.length >= BATCH || this.#bytes > 8 * MIB) await this.end();
  }

  /** Stores the pending blocks. */
  async end(): Promise<void> {
    const pending = this.#pending;
    this.#pending = [];
    this.#bytes = 0;
    await this.#store.put(pending);
  }

  node(unixfs: Unixfs, links: readonly DagPbLink[]): Promise<CID> {
    const Links = [...links].sort((one, other) =>
      Buffer.compare(Buffer.from(one.Name ?? ""), Buffer.from(other.Name ?? "")),
    );
    return this.put(DAG_PB, encodeDagPb({ Data: encodeUnixfs(unixfs), Links }));
  }

  file(filesize: number, blocksizes: readonly number[], links: readonly CID[]): Promise<CID> {
    const Links = links.map((Hash) => link(Hash));
    return this.put(DAG_PB, encodeDagPb({ Data: encodeUnixfs({ type: "File", filesize, blocksizes }), Links }));
  }

  directory(entries: Readonly<Record<string, CID>>, data?: Uint8Array): Promise<CID> {
    const links = Object.entries(entries).map(([name, cid]) => link(cid, name));
    return this.node({ type: "Directory", data }, links);
  }
}

const link = (Hash: CID, Name = "", Tsize = 100): DagPbLink => ({ Name, Hash, Tsize });

/** Stores all harmful content. */
export async function harmful(node: Node, { levels, entries, heavy, abyss }: ContentSize): Promise<Roots> {
  const make = new Maker(node);
  make.leaf = await make.put(RAW, new Uint8Array(100).fill(97));
  const made: Record<string, CID> = {
    ...(await doubled(make)),
    ...(await chains(make, levels)),
    ...(await liars(make)),
    ...(await misleading(make)),
    ...(await nested(make, abyss)),
    ...(await large(make, heavy)),
    hamt: await hamt(make, entries),
  };
  for (const [name, { rules, files }] of Object.entries(catastrophes)) {
    const bytes = new TextEncoder().encode(rules);
    const entriesOf: Record<string, CID> = { _redirects: await make.put(RAW, bytes), "index.html": make.leaf };
    for (const file of files ?? []) entriesOf[file] = make.leaf;
    made[`site ${name}`] = await make.directory(entriesOf);
  }
  await make.end();
  const roots = Object.fromEntries(Object.entries(made).map(([name, cid]) => [name, String(cid)]));
  return { ...roots, ...(await loops(node)), ...identities() };
}

/** Graphs of few blocks with more paths than there are atoms. */
async function doubled(make: Maker) {
  const nothing = await make.put(RAW, new Uint8Array());
  let file = make.leaf;
  let zeros = nothing;
  let tree = make.leaf;
  let shard = await make.node(emptyShard, []);
  const slots = Array.from({ length: 64 }, (_, at) => at.toString(16).toUpperCase().padStart(2, "0"));
  for (let level = 1; level <= DOUBLED; level += 1) {
    const half = 100 * 2 ** (level - 1);
    file = await make.file(2 * half, [half, half], [file, file]);
    zeros = await make.file(2 * half, [half, half], [zeros, zeros]);
    tree = await make.directory({ a: tree, b: tree });
    const below = shard;
    shard = await make.node(
      emptyShard,
      slots.map((slot) => link(below, slot)),
    );
  }
  return { file, zeros, tree, shard };
}

const emptyShard: Unixfs = { type: "HAMTShard", hashType: 0x22, fanout: 256 };

/** Chains: each node has one link, to the next one. */
async function chains(make: Maker, levels: number) {
  let road = make.leaf;
  let shaft = make.leaf;
  let cbor = make.leaf;
  for (let level = 0; level < levels; level += 1) {
    road = await make.directory({ a: road });
    shaft = await make.file(100, [100], [shaft]);
    cbor = await make.put(DAG_CBOR, Buffer.from([0xa1, 0x61, 0x61, 0xd8, 0x2a, 0x58, 0x25, 0, ...cbor.bytes]));
  }
  return { road, shaft, cbor };
}

/** Nodes with wrong sizes. */
async function liars(make: Maker) {
  const { leaf } = make;
  const nothing = await make.put(RAW, new Uint8Array());
  return {
    long: await make.file(1e6, [1e6], [leaf]),
    short: await make.file(10, [10], [leaf]),
    empty: await make.file(1e12, [1e12], [nothing]),
    most: await make.file(2 ** 53 - 1, [2 ** 53 - 1], [leaf]),
    sum: await make.file(5, [100, 100, 100], [leaf, leaf, leaf]),
    unsaid: await make.file(300, [], [leaf, leaf, leaf]),
    fewer: await make.file(300, [100], [leaf, leaf, leaf]),
    sizes: await make.node({ type: "Directory" }, [link(leaf, "none", 0), link(leaf, "all", Number.MAX_SAFE_INTEGER)]),
    "not a file": await make.file(200, [100, 100], [leaf, await make.directory({ a: leaf })]),
    gone: await make.file(200, [100, 100], [leaf, CID.createV1(RAW, await multihash(sha256, Buffer.from("gone")))]),
    slots: await make.node({ type: "HAMTShard", hashType: 0x22, fanout: 7 }, [link(leaf, "0a")]),
    wide: await make.node({ type: "HAMTShard", hashType: 0x22, fanout: 2 ** 40 }, [link(leaf, "0a")]),
  };
}

/** Names that lead elsewhere, or that mislead pages and headers which show them. */
async function misleading(make: Maker) {
  const { leaf } = make;
  const symlink = (target: string) => make.node({ type: "Symlink", data: Buffer.from(target) }, []);
  return {
    "tar up": await make.directory({ a: leaf, "..": leaf }),
    "tar far up": await make.directory({ "a/../../../etc/cron.d/x": leaf }),
    "tar absolute": await make.directory({ "/etc/passwd": leaf }),
    "tar backslash": await make.directory({ "..\\..\\x": leaf, "C:\\x": leaf, "a\0b": leaf, "": leaf }),
    marks: await make.directory({
      "\u202egnp.exe": leaf,
      "a\r\nSet-Cookie: a=b": leaf,
      "<script>alert(1)</script>": leaf,
    }),
    symlinks: await make.directory({
      a: await symlink("a"),
      b: await symlink("../b/b"),
      c: await symlink("x".repeat(65_536)),
    }),
    names: await make.directory(
      Object.fromEntries(Array.from({ length: 8 }, (_, at) => [`${at}`.repeat(60_000), leaf])),
    ),
  };
}

/** Documents that are nested deeply, or have very long names. */
async function nested(make: Maker, abyss: number) {
  const depth = 9_990;
  return {
    brackets: await make.put(DAG_JSON, Buffer.from("[".repeat(depth) + "]".repeat(depth))),
    objects: await make.put(DAG_JSON, Buffer.from(`${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`)),
    arrays: await make.put(DAG_CBOR, Buffer.alloc(depth, 0x81).fill(0x80, depth - 1)),
    abyss: await make.put(DAG_CBOR, Buffer.alloc(abyss, 0x81).fill(0x80, abyss - 1)),
    numbers: await make.put(DAG_CBOR, Buffer.concat([Buffer.from([0x9a, 0, 0x0f, 0xff, 0xf0]), Buffer.alloc(0xffff0)])),
  };
}

/** Blocks of one and two MiB. */
async function large(make: Maker, heavy: number) {
  const block = await make.put(RAW, new Uint8Array(2 * MIB - 64).fill(98));
  const size = 2 * MIB - 64;
  const parts = 1000;
  let slow = make.leaf;
  for (let at = 0; at < heavy; at += 1) slow = await make.directory({ a: slow }, new Uint8Array(MIB).fill(at));
  return {
    film: await make.file(size * parts, new Array<number>(parts).fill(size), new Array<CID>(parts).fill(block)),
    heavy: slow,
  };
}

async function hamt(make: Maker, entries: number): Promise<CID> {
  const keyed = Array.from({ length: entries }, (_, at) => {
    return [entryKey(`file-${at}`, true), { cid: make.leaf, size: 100 }] as const;
  });
  keyed.sort(([one], [other]) => (one < other ? -1 : 1));
  const settings = { version: 1, hash: sha256, sharded: true } as const;
  return (await buildOrdered([keyed], settings, (block) => make.take(block))).cid;
}

/** Names that lead to each other, and to themselves. */
async function loops(node: Node): Promise<Roots> {
  const keys = await Promise.all(["one", "other", "self-made"].map((name) => node.key.gen(name, { type: "ed25519" })));
  const [one = "", other = "", alone = ""] = keys.map(({ id }) => String(id));
  const options = { allowOffline: true, resolve: false };
  await node.name.publish(`/ipns/${other}`, { key: "one", ...options });
  await node.name.publish(`/ipns/${one}`, { key: "other", ...options });
  await node.name.publish(`/ipns/${alone}`, { key: "self-made", ...options });
  return { one, alone };
}

/** CIDs that contain their content. */
function identities(): Roots {
  const sized = (size: number) => String(CID.createV1(RAW, createDigest(0, new Uint8Array(size).fill(97))));
  return { "identity 128": sized(128), "identity 129": sized(129), "identity 100K": sized(100_000) };
}
