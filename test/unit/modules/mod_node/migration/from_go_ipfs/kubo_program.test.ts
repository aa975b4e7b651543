/** Runs with the Kubo program that KUBO names; otherwise the tests are skipped. */
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { PIN_NAMES } from "#node/content/pins/pins.ts";
import { migrateRepo } from "#node/migration/migrate.ts";
import { withoutKubo } from "#test/support/go_ipfs.ts";
import { emptyFolder } from "#test/unit/modules/mod_node/storage/repo/support.ts";
import { collected, fileAt, opened, pinsOf, rootOf } from "./support.ts";

const options = { skip: withoutKubo, timeout: 120_000 };

/** Runs Kubo, which must not fail, and returns its output. */
function kubo(repo: string, args: readonly string[], input = ""): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const env = { ...process.env, IPFS_PATH: repo };
  const child = execFile(process.env.KUBO as string, args, { env }, (error, stdout) =>
    error ? reject(error) : resolve(stdout.trimEnd()),
  );
  child.stdin?.end(input);
  return promise;
}

const pinned = async (repo: string) => ({
  recursive: (await kubo(repo, ["pin", "ls", "-q", "--type=recursive"])).split("\n").sort(),
  direct: (await kubo(repo, ["pin", "ls", "-q", "--type=direct"])).split("\n").sort(),
});

async function made(repo: string, profile: string) {
  await kubo(repo, ["init", `--profile=${profile}`]);
  await kubo(repo, ["files", "mkdir", "-p", "/a/b"]);
  await kubo(repo, ["files", "write", "--create", "--raw-leaves", "/a/b/c"], "in the namespace");
  const tree = await kubo(repo, ["files", "stat", "--hash", "/a"]);
  await kubo(repo, ["pin", "add", "--name=Gärten", tree]);
  const direct = await kubo(repo, ["add", "-q", "--pin=false"], "pinned by itself");
  await kubo(repo, ["pin", "add", "--recursive=false", direct]);
  await kubo(repo, ["files", "rm", "-r", "/a"]);
  await kubo(repo, ["files", "write", "--create", "/later"], "what is left");
  const garbage = await kubo(repo, ["add", "-q", "--pin=false", "--cid-version=1"], "nobody wants it");
  const key = await kubo(repo, ["key", "gen", "other"]);
  await kubo(repo, ["name", "publish", "--allow-offline", "--key=other", `/ipfs/${tree}`]);
  return { tree, direct, garbage, key, root: await kubo(repo, ["files", "stat", "--hash", "/"]) };
}

for (const profile of ["test", "test,pebbleds"]) {
  const title = "a repo of Kubo opens with pins, names, files and keys, and Kubo can then open it and a copy of it";
  test(`${title}: ${profile}`, options, (t) => inTurns(t, profile));
}

async function inTurns(t: TestContext, profile: string): Promise<void> {
  const repo = join(await emptyFolder(t), "repo");
  const { tree, direct, garbage, key, root } = await made(repo, profile);
  const before = await pinned(repo);
  const config = await readFile(join(repo, "config"), "utf8");
  const text = "written by this node";
  await opened(repo, async (node) => {
    assert.deepEqual(await pinsOf(node), before);
    assert.equal(await rootOf(node), root);
    assert.equal(Buffer.from((await node.metadata.get(PIN_NAMES + tree)) ?? []).toString(), "Gärten");
    assert.deepEqual(
      (await node.keys.list()).map(({ name }) => name),
      ["self", "other"],
    );
    assert.equal((await Array.fromAsync(node.metadata.range({ prefix: "ipns/" }))).length, 1);
    assert.ok((await collected(node)).includes(garbage));
    assert.equal(await fileAt(node, `${tree}/b/c`), "in the namespace");
    assert.equal(await fileAt(node, `${root}/later`), "what is left");
    assert.equal(await fileAt(node, direct), "pinned by itself");
    assert.equal(await fileAt(node, `/ipns/${key}/b/c`), "in the namespace");
  });
  assert.equal(await readFile(join(repo, "config"), "utf8"), config);
  assert.deepEqual(await pinned(repo), before);
  assert.equal(await kubo(repo, ["cat", `${tree}/b/c`]), "in the namespace");
  assert.match(await kubo(repo, ["repo", "verify"]), /all blocks validated/);
  const added = await kubo(repo, ["add", "-q", "--raw-leaves", "--pin-name=late"], text);
  await opened(repo, async (node, notices) => {
    assert.equal(await fileAt(node, added), text);
    assert.equal(Buffer.from((await node.metadata.get(PIN_NAMES + added)) ?? []).toString(), "late");
    assert.match(notices.join(), /Kubo has used the repo: 2 of its pins/);
  });
  const own = `${repo}-own`;
  const back = `${repo}-back`;
  await migrateRepo(repo, own);
  await migrateRepo(own, back);
  assert.deepEqual(await pinned(back), await pinned(repo));
  assert.match(await kubo(back, ["pin", "ls", "--names", tree]), /recursive Gärten$/);
  assert.equal(await kubo(back, ["files", "read", "/later"]), "what is left");
  assert.match(await kubo(back, ["repo", "verify"]), /all blocks validated/);
}

test(
  "a start fails while the daemon of Kubo has the repo, and all content is there after kill -9 of the daemon",
  options,
  async (t) => {
    const repo = join(await emptyFolder(t), "repo");
    await kubo(repo, ["init", "--profile=test,pebbleds"]);
    const daemon = spawn(process.env.KUBO as string, ["daemon", "--offline"], {
      env: { ...process.env, IPFS_PATH: repo },
      stdio: ["ignore", "pipe", "inherit"],
    });
    t.after(() => daemon.kill("SIGKILL"));
    for await (const piece of daemon.stdout) if (String(piece).includes("Daemon is ready")) break;
    const added = await kubo(repo, ["add", "-q", "--raw-leaves"], "while its daemon runs");
    await assert.rejects(
      opened(repo, async () => {}),
      { code: "REPO_LOCKED" },
    );
    const ended = once(daemon, "exit");
    daemon.kill("SIGKILL");
    await ended;
    await opened(repo, async (node) => {
      assert.equal(await fileAt(node, added), "while its daemon runs");
      assert.ok((await pinsOf(node)).recursive.includes(added));
    });
  },
);
