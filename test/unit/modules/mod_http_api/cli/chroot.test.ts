import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Place } from "./support.ts";

const emptyDirectory = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";

describe("files chroot", () => {
  test("gives files whose root is lost another one, and tells how to go back", async () => {
    await using place = await Place.withRepo();
    await place.does(["files", "mkdir", "/kept"]);
    const root = (await place.does(["files", "stat", "--hash", "/"])).trim();
    await place.does(["block", "rm", "--force", root]);
    const failed = await place.node(["files", "ls", "/"]);
    assert.equal(failed.code, 1);
    assert.match(failed.stderr, new RegExp(`since ${root} is lost: .*files chroot --confirm`));

    const refused = await place.node(["files", "chroot"]);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /add --confirm/);

    const told = await place.does(["files", "chroot", "--confirm"]);
    assert.ok(told.includes(`was ${root} and is ${emptyDirectory} now`), told);
    assert.ok(told.includes(`files chroot --confirm ${root}`), told);
    assert.equal(await place.does(["files", "ls", "/"]), "");

    await place.does(["files", "mkdir", "/other/below", "--parents"]);
    const other = (await place.does(["files", "stat", "--hash", "/other"])).trim();
    await place.does(["files", "chroot", `/ipfs/${other}`, "--confirm"]);
    assert.equal(await place.does(["files", "ls", "/"]), "below\n");
    const missing = await place.node(["files", "chroot", "--confirm", root]);
    assert.match(missing.stderr, new RegExp(`${root} is not in this repo`));
  });

  test("shows its help, and leaves the other commands of files alone", async () => {
    await using place = await Place.make();
    assert.match(await place.does(["files", "chroot", "--help"]), /^Usage: modhost node files chroot \[CID\]/);
    assert.match(await place.does(["files", "--help"]), /^Usage: modhost node files COMMAND/);
  });
});
