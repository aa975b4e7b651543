import assert from "node:assert/strict";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Place } from "./support.ts";

const hello = "QmZULkCELmmk5XNfCgTnCyFgAVxBRBXyDHGGMVoLFLiXEN";

describe("a command without a daemon", () => {
  test("works on the repo itself", async () => {
    await using place = await Place.withRepo();
    await writeFile(join(place.folder, "hello"), "hello\n");
    assert.equal(await place.does(["add", "hello"]), `added ${hello} hello\n`);
    assert.equal(await place.does(["add", "-q"], { stdin: "hello\n" }), `${hello}\n`);
    assert.equal(await place.does(["--timeout", "30s", "cat", hello]), "hello\n");
    assert.match(await place.does(["--enc=json", "pin", "ls", "--type=recursive"]), /^\{"Keys":\{/);
    await place.does(["config", "Addresses.API", "/ip4/127.0.0.1/tcp/4999"]);
    assert.equal(await place.does(["config", "Addresses.API"]), "/ip4/127.0.0.1/tcp/4999\n");
    assert.ok(!(await readdir(place.repo)).some((name) => name === "api" || name === "repo.lock"));
  });

  test("that needs a network says so", async () => {
    await using place = await Place.withRepo();
    const { code, stderr } = await place.node(["swarm", "peers"]);
    assert.equal(code, 1);
    assert.match(stderr, /^Error: this (?:action|command) must be run in online mode/);
    assert.deepEqual(await place.node(["shutdown"]), { code: 1, stdout: "", stderr: "Error: daemon not running\n" });
  });

  test("that needs no repo works without one, others say what is missing", async () => {
    await using place = await Place.make();
    assert.equal(await place.does(["version"]), "ipfs version 0.9.0\n");
    assert.equal(await place.does(["--version"]), "ipfs version 0.9.0\n");
    assert.equal(await place.does(["version", "-n"]), "0.9.0\n");
    assert.match(await place.does(["cid", "base32", hello]), /^bafybei/);
    const missing = `Error: no IPFS repo found in ${place.repo}.\nplease run: 'ipfs init'\n`;
    assert.deepEqual(await place.node(["pin", "ls"]), { code: 1, stdout: "", stderr: missing });
    assert.deepEqual(await readdir(place.folder), []);
  });

  test("is told of by the name that is typed", async () => {
    await using place = await Place.withRepo();
    assert.match(await place.does(["add", "--help"]), /^Usage: modhost node add /);
    assert.match(await place.does(["pin"]), /^Usage: modhost node pin COMMAND/);
  });

  test("that there is not is refused", async () => {
    await using place = await Place.withRepo();
    const { code, stderr } = await place.node(["nonsense"]);
    assert.deepEqual([code, stderr], [1, "Error: There is no command nonsense\n"]);
  });
});

test("with a daemon, commands are called there", async () => {
  await using place = await Place.withRepo();
  const daemon = await place.daemon();
  assert.equal(await place.does(["add", "--quieter"], { stdin: "hello\n" }), `${hello}\n`);
  assert.equal(await place.does(["cat", hello]), "hello\n");
  const api = (await place.api()) ?? "";
  const elsewhere = ["-c", join(place.folder, "none"), "cat", `--api=${api}`, hello];
  assert.equal(await place.does(elsewhere), "hello\n");
  assert.equal(await place.does(["shutdown"]), "");
  assert.equal((await daemon.ended).code, 0);
});

test("help tells of the three commands of its own, and of each", async () => {
  await using place = await Place.make();
  const all = await place.does([]);
  for (const name of ["init", "daemon", "migrate"]) {
    assert.match(all, new RegExp(`^ {2}${name} `, "m"));
    assert.match(await place.does([name, "--help"]), new RegExp(`^Usage: modhost node ${name}`));
  }
});
