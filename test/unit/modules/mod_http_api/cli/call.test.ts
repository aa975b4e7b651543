import assert from "node:assert/strict";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Sandbox } from "./support.ts";

const hello = "QmZULkCELmmk5XNfCgTnCyFgAVxBRBXyDHGGMVoLFLiXEN";

describe("a command without a daemon", () => {
  test("a command without a daemon works on the repo itself", async () => {
    await using sandbox = await Sandbox.withRepo();
    await writeFile(join(sandbox.folder, "hello"), "hello\n");
    assert.equal(await sandbox.does(["add", "hello"]), `added ${hello} hello\n`);
    assert.equal(await sandbox.does(["add", "-q"], { stdin: "hello\n" }), `${hello}\n`);
    assert.equal(await sandbox.does(["--timeout", "30s", "cat", hello]), "hello\n");
    assert.match(await sandbox.does(["--enc=json", "pin", "ls", "--type=recursive"]), /^\{"Keys":\{/);
    await sandbox.does(["config", "Addresses.API", "/ip4/127.0.0.1/tcp/4999"]);
    assert.equal(await sandbox.does(["config", "Addresses.API"]), "/ip4/127.0.0.1/tcp/4999\n");
    assert.ok(!(await readdir(sandbox.repo)).some((name) => name === "api" || name === "repo.lock"));
  });

  test("a command that needs a network fails with that message without a daemon", async () => {
    await using sandbox = await Sandbox.withRepo();
    const { code, stderr } = await sandbox.node(["swarm", "peers"]);
    assert.equal(code, 1);
    assert.match(stderr, /^Error: this (?:action|command) must be run in online mode/);
    assert.deepEqual(await sandbox.node(["shutdown"]), { code: 1, stdout: "", stderr: "Error: daemon not running\n" });
  });

  test("a command that needs no repo works without one, and other commands report the missing repo", async () => {
    await using sandbox = await Sandbox.make();
    assert.equal(await sandbox.does(["version"]), "ipfs version 0.9.0\n");
    assert.equal(await sandbox.does(["--version"]), "ipfs version 0.9.0\n");
    assert.equal(await sandbox.does(["version", "-n"]), "0.9.0\n");
    assert.match(await sandbox.does(["cid", "base32", hello]), /^bafybei/);
    const missing = `Error: no IPFS repo found in ${sandbox.repo}.\nplease run: 'ipfs init'\n`;
    assert.deepEqual(await sandbox.node(["pin", "ls"]), { code: 1, stdout: "", stderr: missing });
    assert.deepEqual(await readdir(sandbox.folder), []);
  });

  test("the help of a command has the name that was typed", async () => {
    await using sandbox = await Sandbox.withRepo();
    assert.match(await sandbox.does(["add", "--help"]), /^Usage: modhost node add /);
    assert.match(await sandbox.does(["pin"]), /^Usage: modhost node pin COMMAND/);
  });

  test("an unknown command is refused", async () => {
    await using sandbox = await Sandbox.withRepo();
    const { code, stderr } = await sandbox.node(["nonsense"]);
    assert.deepEqual([code, stderr], [1, "Error: There is no command nonsense\n"]);
  });
});

test("with a daemon, commands are sent to it", async () => {
  await using sandbox = await Sandbox.withRepo();
  const daemon = await sandbox.daemon();
  assert.equal(await sandbox.does(["add", "--quieter"], { stdin: "hello\n" }), `${hello}\n`);
  assert.equal(await sandbox.does(["cat", hello]), "hello\n");
  const api = (await sandbox.api()) ?? "";
  const elsewhere = ["-c", join(sandbox.folder, "none"), "cat", `--api=${api}`, hello];
  assert.equal(await sandbox.does(elsewhere), "hello\n");
  assert.equal(await sandbox.does(["shutdown"]), "");
  assert.equal((await daemon.ended).code, 0);
});

test("the help lists init, daemon and migrate, and each has a help of its own", async () => {
  await using sandbox = await Sandbox.make();
  const all = await sandbox.does([]);
  for (const name of ["init", "daemon", "migrate"]) {
    assert.match(all, new RegExp(`^ {2}${name} `, "m"));
    assert.match(await sandbox.does([name, "--help"]), new RegExp(`^Usage: modhost node ${name}`));
  }
});
