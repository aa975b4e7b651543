/** Tests with repos that Kubo 0.43 made, in each form of its stores: see test/fixtures/kubo. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { CID } from "multiformats/cid";
import { PIN_NAMES } from "#node/content/pins/pins.ts";
import { migrateRepo } from "#node/migration/migrate.ts";
import type { LowLevelNode } from "#node/node/low_level_node.ts";
import { madeAt } from "#test/fixtures/kubo/clock.ts";
import { unpack } from "#test/support/unpack.ts";
import { emptyFolder } from "#test/unit/modules/mod_node/storage/repo/support.ts";
import { base32 } from "./go_ipfs_repo.ts";
import { collected, fileAt, opened, pinsOf, rootOf } from "./support.ts";

type Form = "everything" | "pebble" | "leveldb";
const forms: readonly Form[] = ["everything", "pebble", "leveldb"];

interface Made {
  readonly tree: string;
  readonly direct: string;
  readonly large: string;
  readonly garbage: string;
  readonly key: string;
  readonly root: string;
}

/**
 * Sets the clock to the day on which the fixtures were made until the test ends, because their
 * names expire.
 */
const goBack = (t: TestContext) => t.mock.timers.enable({ apis: ["Date"], now: madeAt });

async function made(t: TestContext, form: Form): Promise<{ repo: string; what: Made }> {
  const repo = join(await emptyFolder(t), "kubo");
  await unpack(new URL(`../../../../../fixtures/kubo/${form}.tar.gz`, import.meta.url), repo);
  return { repo, what: JSON.parse(await readFile(join(repo, "made.json"), "utf8")) };
}

const emptyDirectory = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";

/** Asserts that everything that Kubo lists for this repo exists. */
async function assertWhole(node: LowLevelNode, what: Made): Promise<void> {
  const pins = { recursive: [what.tree, what.large, emptyDirectory].sort(), direct: [what.direct] };
  assert.deepEqual(await pinsOf(node), pins);
  assert.equal(Buffer.from((await node.metadata.get(PIN_NAMES + what.tree)) ?? []).toString(), "Gärten");
  assert.equal(await rootOf(node), what.root);
  assert.equal(await fileAt(node, `${what.root}/later`), "what is left");
  assert.equal(await fileAt(node, `${what.tree}/b/c`), "in the namespace");
  assert.equal(await fileAt(node, what.direct), "pinned by itself");
  assert.equal(await fileAt(node, what.large), "x".repeat(600_000));
  assert.equal(await fileAt(node, `/ipns/${what.key}/b/c`), "in the namespace");
  const keys = await node.keys.list();
  assert.deepEqual(
    keys.map(({ name }) => name),
    ["self", "other"],
  );
}

/** Returns the hashes of the files that Kubo has made, by path. */
async function filesOf(repo: string): Promise<Record<string, string>> {
  const all = await readdir(repo, { recursive: true, withFileTypes: true });
  const files = all.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const own = files.filter((path) => !path.startsWith(join(repo, "modhost")));
  const hashed = own.map(async (path) => [
    path,
    createHash("sha256")
      .update(await readFile(path))
      .digest("hex"),
  ]);
  return Object.fromEntries(await Promise.all(hashed));
}

for (const form of forms) {
  test(`a repo of Kubo opens in place, and garbage collection retains what Kubo would: ${form}`, async (t) => {
    goBack(t);
    const { repo, what } = await made(t, form);
    const before = await filesOf(repo);
    await opened(repo, async (node, notices) => {
      assert.match(notices.at(-1) ?? "", /^pins and files of Kubo were imported from /);
      const garbage = await collected(node);
      assert.ok(garbage.includes(what.garbage), garbage.join());
      await assertWhole(node, what);
    });
    const after = await filesOf(repo);
    for (const [path, hash] of Object.entries(before)) {
      if (!path.startsWith(join(repo, "blocks"))) assert.equal(after[path], hash, path);
    }
    await opened(repo, async (node, notices) => {
      assert.deepEqual(notices, []);
      await assertWhole(node, what);
    });
  });

  test(`a repo of Kubo is copied to stores of this node, and from there to a repo that Kubo 0.43 can open: ${form}`, async (t) => {
    goBack(t);
    const { repo, what } = await made(t, form);
    const before = await filesOf(repo);
    const to = `${repo}-copy`;
    const back = `${repo}-back`;
    const { blocks } = await migrateRepo(repo, to);
    assert.ok(blocks >= 10, String(blocks));
    assert.deepEqual(await filesOf(repo), before);
    await opened(to, async (node) => {
      await collected(node);
      await assertWhole(node, what);
    });
    await migrateRepo(to, back);
    assert.equal(await readFile(join(back, "version"), "utf8"), "18\n");
    const name = base32(CID.parse(what.tree).multihash.bytes);
    assert.ok((await readdir(join(back, "blocks", name.slice(-3, -1)))).includes(`${name}.data`));
    await opened(back, (node) => assertWhole(node, what));
  });
}

test("when Kubo has used its Pebble again, only blocks that this node does not have under any codec are imported", async (t) => {
  goBack(t);
  const { repo, what } = await made(t, "everything");
  const rawTree = CID.createV1(0x55, CID.parse(what.tree).multihash).toString();
  // The database does not record codecs, so all blocks are raw at first.
  const first = await opened(repo, async (node) => collected(node));
  assert.ok(first.includes(rawTree) && first.includes(what.garbage), first.join());
  // Kubo leaves this additional file when it opens the database.
  await writeFile(join(repo, "pebbleds", "marker.format-version.000012.024"), "");
  await opened(repo, async (node) => {
    await assertWhole(node, what);
    const second = await collected(node);
    assert.ok(!second.includes(rawTree) && second.includes(what.garbage), second.join());
  });
});

test("an error about a damaged Pebble names the file, and nothing is changed", async (t) => {
  for (const form of ["everything", "pebble"] as const) {
    const { repo } = await made(t, form);
    const folder = join(repo, form === "everything" ? "pebbleds" : "datastore");
    const name = (await readdir(folder)).find((each) => each.endsWith(".sst")) as string;
    const table = await readFile(join(folder, name));
    table[100] = (table[100] as number) ^ 1;
    await writeFile(join(folder, name), table);
    const before = await filesOf(repo);
    const refusal = {
      code: "DATABASE_DAMAGED",
      message: new RegExp(`the pins of Kubo .*${name}.*let Kubo 0.43 open`),
    };
    await assert.rejects(
      opened(repo, async () => {}),
      refusal,
    );
    await assert.rejects(migrateRepo(repo, `${repo}-copy`), refusal);
    assert.deepEqual(await filesOf(repo), before);
  }
});
