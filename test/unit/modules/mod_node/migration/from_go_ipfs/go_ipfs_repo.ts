/**
 * Writes a repo as go-ipfs 0.9 leaves it, file by file, without the node's own code for such repos.
 */
import { hash } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { encode as encodePb } from "@ipld/dag-pb";
import { ClassicLevel } from "classic-level";
import { UnixFS } from "ipfs-unixfs";
import { CID } from "multiformats/cid";
import { create } from "multiformats/hashes/digest";
import { createIdentity } from "#node/storage/repo/identity.ts";

const raw = 0x55;

export interface MadeBlock {
  readonly cid: CID;
  readonly bytes: Uint8Array;
}

const digest = (bytes: Uint8Array) => create(0x12, hash("sha256", bytes, "buffer"));

export function leaf(text: string): MadeBlock {
  const bytes = Buffer.from(text);
  return { cid: CID.createV1(raw, digest(bytes)), bytes };
}

export function directory(entries: Readonly<Record<string, MadeBlock>>): MadeBlock {
  const Links = Object.keys(entries)
    .sort()
    .map((Name) => {
      const { cid, bytes } = entries[Name] as MadeBlock;
      return { Name, Hash: cid, Tsize: bytes.length };
    });
  const bytes = encodePb({ Data: new UnixFS({ type: "directory" }).marshal(), Links });
  return { cid: CID.createV0(digest(bytes) as Parameters<typeof CID.createV0>[0]), bytes };
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/** Returns upper-case base32 without padding. */
export function base32(bytes: Uint8Array): string {
  let bits = "";
  for (const byte of bytes) bits += byte.toString(2).padStart(8, "0");
  return (bits.match(/.{1,5}/g) ?? []).map((group) => alphabet[Number.parseInt(group.padEnd(5, "0"), 2)]).join("");
}

const base64url = (bytes: Uint8Array) => `u${Buffer.from(bytes).toString("base64url")}`;

export type Records = Map<string, Uint8Array>;

const shared = { recursive: "cidRindex", direct: "cidDindex" } as const;

/** Returns the LevelDB records of one pin: the pin itself, and its index entry. */
export function pinRecords({ cid }: MadeBlock, mode: "recursive" | "direct", id: string): Records {
  const record = Buffer.concat([
    Buffer.from("a2", "hex"),
    Buffer.from("63", "hex"),
    Buffer.from("cid"),
    Buffer.from([0x58, cid.bytes.length]),
    cid.bytes,
    Buffer.from("64", "hex"),
    Buffer.from("mode"),
    Buffer.from([mode === "recursive" ? 0 : 1]),
  ]);
  return new Map([
    [`/pins/pin/${id}`, record],
    [`/pins/index/${shared[mode]}/${base64url(cid.bytes)}/${base64url(Buffer.from(`/${id}`))}`, new Uint8Array()],
  ]);
}

/**
 * Returns a filestore reference to the beginning of a file; the path must be shorter than 128
 * bytes.
 */
function referenceRecord({ cid, bytes }: MadeBlock, path: string): Records {
  const value = Buffer.concat([Buffer.from([0x0a, path.length]), Buffer.from(path), Buffer.from([0x18, bytes.length])]);
  return new Map([[`/filestore/${base32(cid.bytes)}`, value]]);
}

export const rootRecord = ({ cid }: MadeBlock): Records => new Map([["/local/filesroot", cid.bytes]]);

/** Writes records to the LevelDB of a repo; `undefined` removes a record. */
export async function writeLevels(folder: string, changes: ReadonlyMap<string, Uint8Array | undefined>): Promise<void> {
  const levels = new ClassicLevel<string, Uint8Array>(folder, { valueEncoding: "view", compression: false });
  await levels.batch(
    [...changes].map(([key, value]) => (value === undefined ? { type: "del", key } : { type: "put", key, value })),
  );
  await levels.close();
}

export async function writeBlock(repo: string, { cid, bytes }: MadeBlock): Promise<void> {
  const name = base32(cid.bytes);
  const folder = join(repo, "blocks", name.slice(-3, -1));
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, `${name}.data`), bytes, { mode: 0o600 });
}

const flatfs = { path: "blocks", shardFunc: "/repo/flatfs/shard/v1/next-to-last/2", type: "flatfs" };
const levelds = { path: "datastore", type: "levelds" };

/** Returns the parts of its configuration that differ from a repo of this node. */
export async function goIpfsConfig(): Promise<object> {
  const mounts = [
    { child: { ...flatfs, sync: true }, mountpoint: "/blocks", prefix: "flatfs.datastore", type: "measure" },
    { child: { ...levelds, compression: "none" }, mountpoint: "/", prefix: "leveldb.datastore", type: "measure" },
  ];
  return {
    Identity: await createIdentity(),
    Datastore: { StorageMax: "10GB", StorageGCWatermark: 90, GCPeriod: "1h", Spec: { mounts, type: "mount" } },
    Addresses: { Swarm: ["/ip4/127.0.0.1/tcp/0"], API: "/ip4/127.0.0.1/tcp/0", Gateway: "/ip4/127.0.0.1/tcp/0" },
    Bootstrap: [],
    Experimental: { FilestoreEnabled: true },
  };
}

/** The blocks of the repo that `makeGoIpfsRepo` creates. */
export const repoContent = (() => {
  const one = leaf("one\n");
  const two = leaf("two\n");
  const three = leaf("three\n");
  const tree = directory({ one, two });
  const above = directory({ "not kept": three });
  const notes = directory({ note: leaf("a note\n") });
  const root = directory({ notes });
  return {
    /** Recursively pinned. */
    tree,
    one,
    two,
    /** Directly pinned. */
    above,
    three,
    /** The MFS root. */
    root,
    notes,
    note: leaf("a note\n"),
    /** Content of a file next to the repo, which the filestore refers to. */
    referred: leaf("bytes of a file\n"),
    garbage: leaf("nobody wants it\n"),
  };
})();

export const fileName = "outside.txt";

export async function makeGoIpfsRepo(repo: string): Promise<void> {
  const { referred, ...stored } = repoContent;
  await mkdir(join(repo, "blocks"), { recursive: true });
  await mkdir(join(repo, "keystore"), { mode: 0o700 });
  await writeFile(join(repo, "version"), "11\n");
  const mounts = [
    { mountpoint: "/blocks", ...flatfs },
    { mountpoint: "/", ...levelds },
  ];
  await writeFile(join(repo, "datastore_spec"), JSON.stringify({ mounts, type: "mount" }));
  await writeFile(join(repo, "config"), JSON.stringify(await goIpfsConfig()));
  await writeFile(join(repo, "blocks", "SHARDING"), `${flatfs.shardFunc}\n`);
  await writeFile(join(repo, "blocks", "diskUsage.cache"), '{"diskUsage":128474,"accuracy":"initial-exact"}\n');
  for (const block of Object.values(stored)) await writeBlock(repo, block);
  await writeFile(join(dirname(repo), fileName), referred.bytes);
  await writeLevels(
    join(repo, "datastore"),
    new Map([
      ...pinRecords(repoContent.tree, "recursive", "778d35afc5c043978aaa3270616c7e99"),
      ...pinRecords(repoContent.above, "direct", "e8dca097c4d94ba38778b54048d27b69"),
      ...rootRecord(repoContent.root),
      ...referenceRecord(referred, fileName),
      ["/pins/state/dirty", Uint8Array.of(0)],
      ["/provider-v1/queue/1795259131251696603/b", repoContent.tree.cid.bytes],
    ]),
  );
}
