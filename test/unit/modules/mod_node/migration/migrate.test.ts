import assert from "node:assert/strict";
import {
  appendFile,
  type FileHandle,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { type MigrationProgress, migrateRepo } from "modhost/node";
import { openNode } from "#node/node/open.ts";
import {
  base32,
  fileName,
  makeGoIpfsRepo,
  repoContent,
} from "#test/unit/modules/mod_node/migration/from_go_ipfs/go_ipfs_repo.ts";
import {
  collected,
  fileAt,
  opened,
  pinsOf,
  rootOf,
} from "#test/unit/modules/mod_node/migration/from_go_ipfs/support.ts";
import { samples } from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";
import { documentIn, emptyFolder } from "#test/unit/modules/mod_node/storage/repo/support.ts";

interface Folders {
  readonly goIpfs: string;
  readonly segments: string;
  readonly flatfs: string;
}

async function folders(t: TestContext): Promise<Folders> {
  const folder = await emptyFolder(t);
  const [goIpfs = "", segments = "", flatfs = ""] = ["go-ipfs", "segments", "flatfs"].map((name) => join(folder, name));
  await makeGoIpfsRepo(goIpfs);
  return { goIpfs, segments, flatfs };
}

/**
 * Returns a set that collects the inode numbers of all files and folders that are synced from now
 * on.
 */
async function syncedFiles(t: TestContext): Promise<ReadonlySet<number>> {
  const synced = new Set<number>();
  await using any = await open(import.meta.filename);
  const handles = Object.getPrototypeOf(any) as FileHandle;
  const { sync } = handles;
  t.mock.method(handles, "sync", async function (this: FileHandle) {
    synced.add((await this.stat()).ino);
    return sync.call(this);
  });
  return synced;
}

/** Returns what a node shows of a repo. */
const shown = (repo: string) =>
  opened(repo, async (node) => {
    const cids = (await Array.fromAsync(node.blocks.store.keys())).map(String).sort();
    return {
      peer: node.repo.identity.peerId.toString(),
      pins: await pinsOf(node),
      root: await rootOf(node),
      note: await fileAt(node, `${await rootOf(node)}/notes/note`),
      referred: await fileAt(node, repoContent.referred.cid.toString()),
      cids: cids.filter((cid) => cid !== "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn"),
      keys: await node.keys.list(),
    };
  });

test("a repo of go-ipfs is migrated to segments and back", async (t) => {
  const { goIpfs, segments, flatfs } = await folders(t);
  await writeFile(join(goIpfs, "swarm.key"), "/key/swarm/psk/1.0.0/\n");
  const before = await shown(goIpfs);
  const reports: MigrationProgress[] = [];
  const progress = await migrateRepo(goIpfs, segments, { onProgress: (each) => reports.push(each) });
  const { blocks } = progress;
  assert.deepEqual(progress.total, blocks);
  assert.deepEqual([reports[0], reports.at(-1)], [{ blocks: 0, bytes: 0 }, progress]);
  assert.deepEqual(await shown(segments), before);
  assert.equal(await readFile(join(segments, "swarm.key"), "utf8"), "/key/swarm/psk/1.0.0/\n");
  assert.deepEqual((await readdir(segments)).sort(), [
    "config",
    "datastore_spec",
    "keystore",
    "metadata",
    "metadata.copy",
    "segments",
    "swarm.key",
    "version",
  ]);
  const spec = (document: unknown) => (document as { Datastore: { Spec: { mounts: unknown[] } } }).Datastore.Spec;
  assert.match(JSON.stringify(spec(await documentIn(segments))), /"type":"segments"/);

  await migrateRepo(segments, flatfs);
  assert.match(JSON.stringify(spec(await documentIn(flatfs))), /"type":"flatfs"/);
  assert.deepEqual(await shown(flatfs), before);
  assert.deepEqual(await shown(goIpfs), before);
  // The LevelDB contains all metadata as well, so the metadata of this node can be removed.
  await rm(join(flatfs, "modhost"), { recursive: true });
  assert.deepEqual(await shown(flatfs), before);
  await opened(flatfs, async (node) => assert.ok((await collected(node)).length > 0));
});

test("keys and changes that this node has made are copied, too", async (t) => {
  const { goIpfs, segments } = await folders(t);
  await opened(goIpfs, async (node) => {
    await node.keys.generate("mine", { type: "ed25519" });
    await node.pins.remove(repoContent.tree.cid, true);
    await node.pins.keep([repoContent.one.cid]);
  });
  const before = await shown(goIpfs);
  await migrateRepo(goIpfs, segments);
  const after = await shown(segments);
  assert.deepEqual(after, before);
  assert.deepEqual(after.pins.recursive, [repoContent.one.cid.toString()]);
});

test("keys are those of the old repo when the copy ends, and durable", async (t) => {
  const { goIpfs, segments } = await folders(t);
  await opened(goIpfs, (node) => node.keys.generate("mine", { type: "ed25519" }));
  await writeFile(join(goIpfs, "swarm.key"), "/key/swarm/psk/1.0.0/\n");
  const leaving = new AbortController();
  leaving.abort(new Error("enough"));
  await assert.rejects(migrateRepo(goIpfs, segments, { signal: leaving.signal }), /enough/);
  // Left by an earlier attempt, before the old repo's key with this name was removed.
  await mkdir(join(segments, "keystore"), { recursive: true });
  await writeFile(join(segments, "keystore", "key_n5wgi"), "old");
  const synced = await syncedFiles(t);
  await migrateRepo(goIpfs, segments);
  const names = await readdir(join(goIpfs, "keystore"));
  assert.equal(names.length, 1);
  assert.deepEqual(await readdir(join(segments, "keystore")), names);
  const modes = await Promise.all([goIpfs, segments].map((repo) => stat(join(repo, "keystore", names[0] ?? ""))));
  assert.equal(modes[1]?.mode, modes[0]?.mode);
  for (const path of [join("keystore", names[0] ?? ""), "keystore", "swarm.key", ""]) {
    assert.ok(synced.has((await stat(join(segments, path))).ino), path);
  }
});

test("an interrupted copy is no repo, and the same call completes it", async (t) => {
  const { goIpfs, segments } = await folders(t);
  await opened(goIpfs, async (node) => {
    await node.blocks.put(samples(700, 1000));
    await node.sync();
  });
  const before = await shown(goIpfs);
  const leaving = new AbortController();
  const onProgress = ({ blocks }: MigrationProgress) => {
    if (blocks > 0) leaving.abort(new Error("enough"));
  };
  await assert.rejects(migrateRepo(goIpfs, segments, { signal: leaving.signal, onProgress }), /enough/);
  await assert.rejects(openNode({ repo: segments }), {
    message: `${segments} is an incomplete copy of ${goIpfs}: complete it with \`modhost node migrate\`, or remove the folder`,
  });
  await assert.rejects(openNode({ repo: segments, init: false }), /no IPFS repo found in/);
  await assert.rejects(migrateRepo(join(dirname(goIpfs), "other"), segments), /no IPFS repo found in/);
  const progress = await migrateRepo(goIpfs, segments);
  assert.equal(progress.blocks, progress.total);
  assert.deepEqual(await shown(segments), before);
  await assert.rejects(migrateRepo(goIpfs, segments), {
    message: `${segments} is a repo already: name a folder that is not there yet`,
  });
});

test("a migration refuses folders with other content and repos in use", async (t) => {
  const { goIpfs, segments, flatfs } = await folders(t);
  await mkdir(segments);
  await writeFile(join(segments, "something"), "else");
  await assert.rejects(migrateRepo(goIpfs, segments), { message: `${segments} is not empty` });
  await rm(join(segments, "something"));
  await opened(goIpfs, async () => {
    await assert.rejects(migrateRepo(goIpfs, segments), { code: "REPO_LOCKED" });
  });
  await assert.rejects(migrateRepo(goIpfs, goIpfs), { code: "REPO_LOCKED" });
  await writeFile(join(segments, "copied-from"), flatfs);
  await assert.rejects(migrateRepo(goIpfs, segments), {
    message: `${segments} is half of a copy of ${flatfs}, not of ${goIpfs}`,
  });
});

test("a damaged block stops the migration with an error that names it", async (t) => {
  const { goIpfs, segments } = await folders(t);
  const name = base32(repoContent.two.cid.bytes);
  await appendFile(join(goIpfs, "blocks", name.slice(-3, -1), `${name}.data`), "?");
  await assert.rejects(migrateRepo(goIpfs, segments), {
    code: "BLOCK_CORRUPT",
    message: new RegExp(`^block ${repoContent.two.cid} is damaged on disk`),
  });
  assert.equal((await readdir(segments)).includes("config"), false);
});

test("filestore references point to the same files from another folder, or become blocks", async (t) => {
  const { goIpfs } = await folders(t);
  const outside = dirname(goIpfs);
  const above = join(dirname(outside), `${outside.split("/").at(-1)}-above`);
  t.after(() => rm(above, { recursive: true, force: true }));
  await rename(outside, join(above)).catch(() => {});
  const repo = join(above, "go-ipfs");
  await mkdir(join(above, "elsewhere"));

  const deeper = join(above, "elsewhere", "repo");
  const wider = join(above, "repo");
  await migrateRepo(repo, deeper);
  await opened(deeper, async (node) => {
    assert.deepEqual(await Array.fromAsync(node.filestore?.list() ?? []), []);
    assert.equal(await fileAt(node, repoContent.referred.cid.toString()), "bytes of a file\n");
  });
  await migrateRepo(repo, wider);
  await opened(wider, async (node) => {
    const [{ reference } = assert.fail()] = await Array.fromAsync(node.filestore?.list() ?? []);
    assert.deepEqual(reference, { path: fileName, offset: 0, size: 16 });
  });
  const notices: string[] = [];
  await writeFile(join(above, fileName), "it has changed..");
  await migrateRepo(repo, join(above, "elsewhere", "again"), { onNotice: (sentence) => notices.push(sentence) });
  assert.ok(
    notices.includes(`${repoContent.referred.cid} is lost: ${join(above, fileName)} has changed`),
    String(notices),
  );
  assert.ok((await stat(join(above, "elsewhere", "again", "config"))).isFile());
});
