/**
 * Writes a repo as Kubo 0.43 leaves it, file by file: blocks are named after multihashes, pins have
 * names, and the config has Kubo's keys.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  base32,
  goIpfsConfig,
  type MadeBlock,
  type Records,
  repoContent,
  rootRecord,
  writeLevels,
} from "./go_ipfs_repo.ts";

const text = (value: string): Buffer =>
  Buffer.concat([Buffer.from([0x60 + Buffer.byteLength(value)]), Buffer.from(value)]);
const base64url = (bytes: Uint8Array) => `u${Buffer.from(bytes).toString("base64url")}`;

const indexes = { recursive: "cidRindex", direct: "cidDindex" } as const;

/** Returns the record and index entries of a pin with a name of fewer than 24 bytes. */
function namedPin({ cid }: MadeBlock, mode: "recursive" | "direct", id: string, name: string): Records {
  const fields = [text("cid"), Buffer.from([0x58, cid.bytes.length]), cid.bytes];
  fields.push(text("mode"), Buffer.from([mode === "recursive" ? 0 : 1]), text("name"), text(name));
  const at = base64url(Buffer.from(`/${id}`));
  return new Map([
    [`/pins/pin/${id}`, Buffer.concat([Buffer.from("a3", "hex"), ...fields])],
    [`/pins/index/${indexes[mode]}/${base64url(cid.bytes)}/${at}`, new Uint8Array()],
    [`/pins/index/nameIndex/${base64url(Buffer.from(name))}/${at}`, new Uint8Array()],
  ]);
}

async function writeKuboBlock(repo: string, { cid, bytes }: MadeBlock): Promise<void> {
  const name = base32(cid.multihash.bytes);
  const folder = join(repo, "blocks", name.slice(-3, -1));
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, `${name}.data`), bytes, { mode: 0o600 });
}

const flatfs = { path: "blocks", shardFunc: "/repo/flatfs/shard/v1/next-to-last/2", type: "flatfs" };
const levelds = { path: "datastore", type: "levelds" };

/** Keys of Kubo's `init` that this node has with other values or not at all. */
const kuboConfig = {
  AutoConf: {},
  AutoTLS: {},
  Bitswap: {},
  Bootstrap: ["auto"],
  DNS: { Resolvers: { ".": "auto" } },
  HTTPRetrieval: {},
  Import: { CidVersion: null, HashFunction: null, UnixFSChunker: null, UnixFSRawLeaves: null },
  Internal: {},
  Ipns: { DelegatedPublishers: ["auto"], RecordLifetime: "", RepublishPeriod: "", ResolveCacheSize: 128 },
  Provide: { DHT: {} },
  Provider: {},
  Reprovider: {},
  Routing: { DelegatedRouters: ["auto"] },
  Swarm: { AddrFilters: null, ConnMgr: {}, DisableBandwidthMetrics: false, RelayClient: {}, ResourceMgr: {} },
  Version: {},
};

/** Creates a repo with `repoContent`; its pins are named `the tree` and `grüße`. */
export async function makeKuboRepo(repo: string, version = "18"): Promise<void> {
  const { referred: _, ...stored } = repoContent;
  await mkdir(join(repo, "blocks"), { recursive: true });
  await mkdir(join(repo, "keystore"), { mode: 0o700 });
  await writeFile(join(repo, "version"), `${version}\n`);
  const mounts = [
    { mountpoint: "/blocks", ...flatfs },
    { mountpoint: "/", ...levelds },
  ];
  await writeFile(join(repo, "datastore_spec"), JSON.stringify({ mounts, type: "mount" }));
  const spec = {
    mounts: [
      { mountpoint: "/blocks", prefix: "flatfs.datastore", sync: false, ...flatfs },
      { compression: "none", mountpoint: "/", prefix: "leveldb.datastore", ...levelds },
    ],
    type: "mount",
  };
  const before = (await goIpfsConfig()) as Record<string, object>;
  const config = { ...before, ...kuboConfig, Datastore: { ...before.Datastore, Spec: spec, BlockKeyCacheSize: null } };
  await writeFile(join(repo, "config"), JSON.stringify(config));
  await writeFile(join(repo, "blocks", "SHARDING"), `${flatfs.shardFunc}\n`);
  for (const block of Object.values(stored)) await writeKuboBlock(repo, block);
  await writeLevels(
    join(repo, "datastore"),
    new Map([
      ...namedPin(repoContent.tree, "recursive", "778d35afc5c043978aaa3270616c7e99", "the tree"),
      ...namedPin(repoContent.above, "direct", "e8dca097c4d94ba38778b54048d27b69", "grüße"),
      ...rootRecord(repoContent.root),
      ["/pins/state/dirty", Uint8Array.of(0)],
    ]),
  );
}

export const configOf = async (repo: string): Promise<unknown> =>
  JSON.parse(await readFile(join(repo, "config"), "utf8"));
