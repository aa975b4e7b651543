import assert from "node:assert/strict";
import { readdir, watch } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Sandbox } from "./support.ts";

const hello = "QmZULkCELmmk5XNfCgTnCyFgAVxBRBXyDHGGMVoLFLiXEN";

describe("migrate", () => {
  test("migrate copies a repo to flatfs and back, and reports the amount", async () => {
    await using sandbox = await Sandbox.withRepo();
    await sandbox.does(["add", "-Q"], { stdin: "hello\n" });
    const id = await sandbox.does(["id", "-f", "<id>"]);
    assert.match(await sandbox.does(["migrate", "repo", "flat"]), /^2 blocks \(.+\) copied to .+\/flat\n$/);
    assert.match(await sandbox.does(["migrate", "--kind=segments", "flat", "again"]), /^2 blocks \(.+\/again\n$/);
    for (const repo of ["flat", "again"]) {
      assert.equal(await sandbox.does(["--repo-dir", repo, "cat", hello]), "hello\n");
      assert.equal(await sandbox.does(["-c", repo, "id", "-f", "<id>"]), id);
      assert.match(await sandbox.does(["-c", repo, "pin", "ls", "--type=recursive"]), new RegExp(`^${hello} `, "m"));
    }
    assert.ok((await readdir(join(sandbox.folder, "flat"))).includes("blocks"));
  });

  test("migrate leaves no locks when it is interrupted, and continues when it is run again", async () => {
    await using sandbox = await Sandbox.withRepo();
    const stdin = Array.from({ length: 2000 }, (_, at) => String(at).padStart(32, "0")).join("");
    const cid = await sandbox.does(["add", "-Q", "--chunker=size-32"], { stdin });
    const copying = watch(sandbox.folder, { recursive: true });
    const child = sandbox.start(["migrate", "repo", "flat"]);
    for await (const { filename } of copying) if (/^flat\/blocks\/..\/./.test(filename ?? "")) break;
    child.kill("SIGINT");
    child.kill("SIGINT");
    const { code, stderr } = await child.ended;
    assert.deepEqual([code, stderr], [130, "Interrupted. Run the same command again to continue.\n"]);
    for (const repo of ["repo", "flat"]) {
      assert.ok(!(await readdir(join(sandbox.folder, repo))).includes("repo.lock"), repo);
    }
    assert.equal((await sandbox.node(["-c", "flat", "pin", "ls"])).code, 1);
    await sandbox.does(["migrate", "repo", "flat"]);
    assert.equal(await sandbox.does(["-c", "flat", "cat", cid.trim()]), stdin);
  });

  test("migrate refuses a missing repo, a folder in use, and an unknown kind", async () => {
    await using sandbox = await Sandbox.withRepo();
    const reasons: string[] = [];
    for (const args of [["nothing", "to"], ["repo", "repo"], ["--kind=other", "repo", "to"], ["repo"]]) {
      const { code, stderr } = await sandbox.node(["migrate", ...args]);
      assert.equal(code, 1);
      reasons.push(stderr);
    }
    assert.match(reasons[0] ?? "", /^Error: there is no repo .+\/nothing\n$/);
    assert.match(reasons[1] ?? "", /^Error: .+\/repo/);
    assert.equal(reasons[2], "Error: --kind takes segments or flatfs, not other\n");
    assert.match(reasons[3] ?? "", /^Error: migrate takes two arguments/);
  });
});

test("--data moves blocks and metadata elsewhere", async () => {
  await using sandbox = await Sandbox.withRepo();
  const size = async () => (await readdir(join(sandbox.folder, "elsewhere"), { recursive: true })).length;
  assert.equal(await sandbox.does(["--data", "elsewhere", "add", "-Q"], { stdin: "hello\n" }), `${hello}\n`);
  assert.ok((await size()) > 2);
  assert.equal(await sandbox.does(["cat", "--data=elsewhere", hello]), "hello\n");
  const { code } = await sandbox.node(["block", "stat", hello]);
  assert.equal(code, 1);
});
