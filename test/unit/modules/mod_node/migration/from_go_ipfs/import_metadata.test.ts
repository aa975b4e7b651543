import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { importMetadata } from "#node/migration/from_go_ipfs/import_metadata.ts";
import { openNode } from "#node/node/open.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import type { MetadataStore } from "#node/storage/metadata/store.ts";
import { failure } from "#node/util/errors.ts";
import { emptyFolder } from "#test/unit/modules/mod_node/storage/repo/support.ts";
import {
  directory,
  leaf,
  type MadeBlock,
  makeGoIpfsRepo,
  pinRecords,
  repoContent,
  rootRecord,
  writeBlock,
  writeLevels,
} from "./go_ipfs_repo.ts";
import { collected, fileAt, opened, pinsOf, rootOf } from "./support.ts";

async function goIpfsRepo(t: TestContext): Promise<string> {
  const repo = join(await emptyFolder(t), "repo");
  await makeGoIpfsRepo(repo);
  return repo;
}

const text = ({ cid }: MadeBlock) => cid.toString();

/** Returns names, contents and times of all files below a folder. */
async function snapshot(folder: string): Promise<string> {
  const lines = (await readdir(folder)).sort().map(async (name) => {
    const path = join(folder, name);
    return `${name} ${(await readFile(path)).toString("base64")} ${(await stat(path)).mtimeMs}`;
  });
  return (await Promise.all(lines)).join("\n");
}

test("a repo of go-ipfs opens, and garbage collection retains only pins, files and references", async (t) => {
  const repo = await goIpfsRepo(t);
  const levels = join(repo, "datastore");
  const before = await snapshot(levels);
  const everything = await opened(repo, async (node, notices) => {
    assert.deepEqual(notices, [`pins and files of go-ipfs were imported from ${levels}`]);
    const pins = await pinsOf(node);
    assert.deepEqual(pins, { recursive: [text(repoContent.tree)], direct: [text(repoContent.above)] });
    assert.equal(await rootOf(node), text(repoContent.root));
    assert.equal((await node.stat()).blocks, 10);
    assert.equal(await fileAt(node, text(repoContent.referred)), "bytes of a file\n");
    const garbage = [repoContent.three, repoContent.garbage, repoContent.referred];
    assert.deepEqual(await collected(node), garbage.map(text).sort());
    return pins;
  });
  await opened(repo, async (node, notices) => {
    assert.deepEqual(notices, []);
    assert.deepEqual(await pinsOf(node), everything);
    assert.equal(await fileAt(node, `${text(repoContent.tree)}/two`), "two\n");
    assert.equal(await fileAt(node, `${await rootOf(node)}/notes/note`), "a note\n");
    assert.deepEqual(await collected(node), []);
  });
  assert.equal(await snapshot(levels), before);
  assert.deepEqual((await readdir(repo)).sort(), [
    "blocks",
    "config",
    "datastore",
    "datastore_spec",
    "keystore",
    "modhost",
    "version",
  ]);
  assert.deepEqual((await readdir(join(repo, "modhost"))).sort(), ["metadata", "metadata.copy"]);
});

test("pins that this node has added or removed stay so, although the database of go-ipfs says otherwise", async (t) => {
  const repo = await goIpfsRepo(t);
  const own = leaf("added here");
  await opened(repo, async (node) => {
    await node.pins.remove(repoContent.tree.cid, true);
    await node.blocks.put([own]);
    await node.pins.keep([own.cid]);
  });
  await opened(repo, async (node) => {
    assert.deepEqual(await pinsOf(node), { recursive: [text(own)], direct: [text(repoContent.above)] });
  });
});

test("later changes of go-ipfs are applied, and nothing else changes", async (t) => {
  const repo = await goIpfsRepo(t);
  const own = leaf("added here");
  await opened(repo, async (node) => {
    await node.blocks.put([own]);
    await node.pins.keep([own.cid]);
  });
  const later = leaf("added by go-ipfs");
  await writeBlock(repo, later);
  const root = directory({ later });
  await writeBlock(repo, root);
  await writeLevels(
    join(repo, "datastore"),
    new Map<string, Uint8Array | undefined>([
      ...pinRecords(later, "recursive", "01"),
      ...[...pinRecords(repoContent.above, "direct", "e8dca097c4d94ba38778b54048d27b69").keys()].map(
        (key) => [key, undefined] as const,
      ),
      ...rootRecord(root),
    ]),
  );
  await opened(repo, async (node, notices) => {
    assert.deepEqual(notices, ["go-ipfs has used the repo: 3 of its pins and files were imported"]);
    assert.deepEqual(await pinsOf(node), { recursive: [repoContent.tree, own, later].map(text).sort(), direct: [] });
    assert.equal(await rootOf(node), text(root));
  });
  await opened(repo, async (_, notices) => assert.deepEqual(notices, []));
});

test("opening a database of go-ipfs without changing it causes no import", async (t) => {
  const repo = await goIpfsRepo(t);
  await opened(repo, (node) => node.pins.remove(repoContent.tree.cid, true));
  await writeLevels(join(repo, "datastore"), new Map([["/other", Uint8Array.of(1)]]));
  await opened(repo, async (node, notices) => {
    assert.deepEqual(notices, []);
    assert.deepEqual((await pinsOf(node)).recursive, []);
  });
});

test("files that both programs have changed exist in both versions", async (t) => {
  const repo = await goIpfsRepo(t);
  await opened(repo, (node) =>
    node.files.change({ flush: true }, (root) => root.put({ name: "here", cid: repoContent.one.cid, size: 4 })),
  );
  const root = directory({ there: repoContent.two });
  await writeBlock(repo, root);
  await writeLevels(join(repo, "datastore"), rootRecord(root));
  const name = `go-ipfs-${text(root)}`;
  await opened(repo, async (node, notices) => {
    assert.deepEqual(notices, [
      `both go-ipfs and this node have changed their files: those of go-ipfs are in /${name}`,
      "go-ipfs has used the repo: 1 of its pins and files were imported",
    ]);
    const own = await rootOf(node);
    assert.equal(await fileAt(node, `${own}/here`), "one\n");
    assert.equal(await fileAt(node, `${own}/${name}/there`), "two\n");
    assert.equal(await fileAt(node, `${own}/notes/note`), "a note\n");
  });
});

test("pins are read from records alone if go-ipfs was changing them, and otherwise from records and index", async (t) => {
  const repo = await goIpfsRepo(t);
  const levels = join(repo, "datastore");
  const record = leaf("a record alone");
  const index = leaf("an index alone");
  const only = (records: Map<string, Uint8Array>, start: string) =>
    [...records].filter(([key]) => key.startsWith(start));
  const changes = [
    ...only(pinRecords(record, "recursive", "02"), "/pins/pin/"),
    ...only(pinRecords(index, "direct", "03"), "/pins/index/"),
  ];
  await writeLevels(levels, new Map([...changes, ["/pins/state/dirty", Uint8Array.of(1)]]));
  await opened(repo, async (node) => {
    const pins = await pinsOf(node);
    assert.deepEqual(pins.recursive, [repoContent.tree, record].map(text).sort());
    assert.deepEqual(pins.direct, [text(repoContent.above)]);
  });
  await writeLevels(levels, new Map([["/pins/state/dirty", Uint8Array.of(0)]]));
  await opened(repo, async (node) =>
    assert.deepEqual((await pinsOf(node)).direct, [repoContent.above, index].map(text).sort()),
  );
});

test("a block that is pinned directly and recursively is imported as a recursive pin", async (t) => {
  const repo = await goIpfsRepo(t);
  await writeLevels(join(repo, "datastore"), pinRecords(repoContent.tree, "direct", "04"));
  await opened(repo, async (node) =>
    assert.deepEqual(await pinsOf(node), { recursive: [text(repoContent.tree)], direct: [text(repoContent.above)] }),
  );
});

test("a start fails without any change while some pins cannot be read", async (t) => {
  const repo = await goIpfsRepo(t);
  const levels = join(repo, "datastore");
  const refused = async (reason: RegExp) => {
    await assert.rejects(openNode({ repo, offline: true }), (error: Error & { code: string }) => {
      assert.equal(error.code, "DATABASE_DAMAGED");
      assert.match(error.message, reason);
      assert.match(error.message, /Nothing was changed; let go-ipfs 0\.9 open the repo/);
      return true;
    });
    assert.equal((await readdir(repo)).includes("repo.lock"), false);
    assert.deepEqual(await readdir(join(repo, "modhost")), ["metadata"]);
  };
  const cases: readonly (readonly [string, Uint8Array, RegExp])[] = [
    ["/pins/pin/05", Buffer.from("a0", "hex"), /the record \/pins\/pin\/05 cannot be read \(it is no pin\)/],
    ["/pins/pin/05", Buffer.from("ff", "hex"), /the record \/pins\/pin\/05 cannot be read/],
    [
      "/pins/index/cidRindex/uAAAA/uL2U4",
      new Uint8Array(),
      /the record \/pins\/index\/cidRindex\/uAAAA\/uL2U4 cannot be read/,
    ],
    ["/local/filesroot", Buffer.from("00", "hex"), /the record \/local\/filesroot cannot be read/],
    ["/filestore/AFKREI", Buffer.from("08", "hex"), /the record \/filestore\/AFKREI cannot be read/],
    ["/local/pins", repoContent.tree.cid.bytes, /\/local\/pins has pins of a repo before version 11/],
  ];
  for (const [key, value, reason] of cases) {
    const root = key === "/local/filesroot" ? repoContent.root.cid.bytes : undefined;
    await writeLevels(levels, new Map([[key, value]]));
    await refused(reason);
    await writeLevels(levels, new Map([[key, root]]));
  }
  for (const name of (await readdir(levels)).filter((each) => /\.log$|^MANIFEST/.test(each))) {
    const path = join(levels, name);
    const sound = await readFile(path);
    if (sound.length < 20) continue;
    const damaged = Buffer.from(sound);
    damaged[10] = (damaged[10] as number) ^ 1;
    await writeFile(path, damaged);
    await refused(/is damaged: the checksum of the record at 0 is wrong/);
    await writeFile(path, sound);
  }
  await rm(join(levels, "CURRENT"));
  await mkdir(join(levels, "CURRENT"));
  await refused(/EISDIR/);
  await rm(join(levels, "CURRENT"), { recursive: true });
});

test("without a database nothing is imported, and a database that was deleted removes nothing", async (t) => {
  const repo = await goIpfsRepo(t);
  await opened(repo, async () => {});
  await rm(join(repo, "datastore"), { recursive: true });
  await opened(repo, async (node, notices) => {
    assert.deepEqual(notices, [
      `the database of go-ipfs is missing from ${join(repo, "datastore")}: pins and files that were imported from it remain`,
    ]);
    assert.deepEqual((await pinsOf(node)).recursive, [text(repoContent.tree)]);
  });
});

test("a new repo with the profile flatfs is a repo of go-ipfs without pins", async (t) => {
  const repo = join(await emptyFolder(t), "repo");
  const node = await openNode({ repo, profile: "test,flatfs", offline: true });
  t.after(() => node.close());
  assert.deepEqual((await readdir(repo)).sort(), [
    "blocks",
    "config",
    "datastore_spec",
    "keystore",
    "modhost",
    "repo.lease",
    "repo.lock",
    "version",
  ]);
  assert.deepEqual((await pinsOf(node)).recursive, ["QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn"]);
  assert.equal(
    await readFile(join(repo, "datastore_spec"), "utf8"),
    '{"mounts":[{"mountpoint":"/blocks","path":"blocks","shardFunc":"/repo/flatfs/shard/v1/next-to-last/2","type":"flatfs"},{"mountpoint":"/","path":"datastore","type":"levelds"}],"type":"mount"}',
  );
});

test("an interrupted import begins again and has the same result", async (t) => {
  const folder = await emptyFolder(t);
  const levels = join(folder, "datastore");
  const pins = Array.from({ length: 5000 }, (_, at) => leaf(`pin ${at}`));
  await writeLevels(levels, new Map(pins.flatMap((pin, at) => [...pinRecords(pin, "recursive", `id${at}`)])));
  const metadata = memoryMetadata();
  let left = 1;
  const failing: MetadataStore = {
    ...metadata,
    transaction: (run) =>
      left-- > 0 ? metadata.transaction(run) : Promise.reject(failure("STORE_FULL", { path: folder, reason: "x" })),
  };
  const notices: string[] = [];
  const start = (store: MetadataStore) =>
    importMetadata({
      from: { engine: "levelds", path: levels, program: "go-ipfs" },
      metadata: store,
      find: async () => undefined,
      scratch: join(folder, "reading"),
      onNotice: (sentence) => notices.push(sentence),
    });
  const count = async () => (await Array.fromAsync(metadata.range({ prefix: "pins/recursive/" }))).length;
  await assert.rejects(start(failing), { code: "STORE_FULL" });
  assert.equal(await count(), 4096);
  await start(metadata);
  assert.equal(await count(), 5000);
  assert.deepEqual(notices, [`pins and files of go-ipfs were imported from ${levels}`]);
  assert.deepEqual(await readdir(folder), ["datastore"]);
});
