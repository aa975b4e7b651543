import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Sandbox } from "./support.ts";

const emptyDirectory = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";

describe("files chroot", () => {
  test("files chroot replaces a lost root of the files, and prints how to go back", async () => {
    await using sandbox = await Sandbox.withRepo();
    await sandbox.does(["files", "mkdir", "/kept"]);
    const root = (await sandbox.does(["files", "stat", "--hash", "/"])).trim();
    await sandbox.does(["block", "rm", "--force", root]);
    const failed = await sandbox.node(["files", "ls", "/"]);
    assert.equal(failed.code, 1);
    assert.match(failed.stderr, new RegExp(`since ${root} is lost: .*files chroot --confirm`));

    const refused = await sandbox.node(["files", "chroot"]);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /add --confirm/);

    const printed = await sandbox.does(["files", "chroot", "--confirm"]);
    assert.ok(printed.includes(`was ${root} and is now ${emptyDirectory}`), printed);
    assert.ok(printed.includes(`files chroot --confirm ${root}`), printed);
    assert.equal(await sandbox.does(["files", "ls", "/"]), "");

    await sandbox.does(["files", "mkdir", "/other/below", "--parents"]);
    const other = (await sandbox.does(["files", "stat", "--hash", "/other"])).trim();
    await sandbox.does(["files", "chroot", `/ipfs/${other}`, "--confirm"]);
    assert.equal(await sandbox.does(["files", "ls", "/"]), "below\n");
    const missing = await sandbox.node(["files", "chroot", "--confirm", root]);
    assert.match(missing.stderr, new RegExp(`${root} is not in this repo`));
  });

  test("files chroot shows its help, and leaves the other files commands alone", async () => {
    await using sandbox = await Sandbox.make();
    assert.match(await sandbox.does(["files", "chroot", "--help"]), /^Usage: modhost node files chroot \[CID\]/);
    assert.match(await sandbox.does(["files", "--help"]), /^Usage: modhost node files COMMAND/);
  });
});
