import assert from "node:assert/strict";
import { chmod, chown, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { bytes, MountFixture, skip } from "./support.ts";

const program = fileURLToPath(new URL("../../../../fixtures/mount/node.ts", import.meta.url));
const nobody = 65534;

describe("permissions of mounts", { skip }, () => {
  /** Returns the output of a node that fails to mount. */
  const failing = (fixture: MountFixture, before: string) =>
    fixture.shell(`! ${before} "${process.execPath}" --conditions=source "${program}" repo ipfs ipns 2>&1`);

  test("without the device nothing is mounted, and the error names the remedy", async () => {
    await using fixture = await MountFixture.make();
    // A mount namespace without the device.
    const without = `mount -t tmpfs none /dev; for d in null:3 urandom:9; do mknod -m 666 /dev/\${d%:*} c 1 \${d#*:}; done`;
    const said = await failing(fixture, `unshare -m bash -ec '${without}; exec "$@"' -`);
    assert.match(
      said,
      /NodeError: fuse: fuse device not found: \/dev\/fuse; load the kernel's module `fuse`, or allow/,
    );
    assert.deepEqual(await fixture.mounted(), []);
  });

  test("users other than root get an error that says so", async () => {
    await using fixture = await MountFixture.make();
    for (const path of [fixture.folder, fixture.ipfs, fixture.ipns]) await chown(path, nobody, nobody);
    // The process may read the sources in any folder.
    const read = "--inh-caps=+dac_read_search --ambient-caps=+dac_read_search";
    const said = await failing(fixture, `setpriv --reuid=${nobody} --regid=${nobody} --clear-groups ${read}`);
    assert.match(said, new RegExp(`NodeError: fuse: only root can mount, and this is user ${nobody}`));
    assert.deepEqual(await fixture.mounted(), []);
  });

  test("both folders are mounted or none", async () => {
    await using fixture = await MountFixture.make();
    const node = await fixture.open();
    // The first mount hides the second folder.
    const inside = join(fixture.ipfs, "inside");
    await mkdir(inside);
    await assert.rejects(node.mounts.mount({ ipfs: fixture.ipfs, ipns: inside }), /mount point does not exist/);
    assert.deepEqual(await fixture.mounted(), []);
    assert.equal(node.mounts.active, false);
    await node.mounts.mount(fixture);
    assert.equal((await fixture.mounted()).length, 2);
  });

  test("concurrent calls mount one after the other", async () => {
    await using fixture = await MountFixture.make();
    const node = await fixture.open();
    await Promise.all([node.mounts.mount(fixture), node.mounts.mount(fixture), node.mounts.mount(fixture)]);
    assert.deepEqual((await fixture.mounted()).sort(), [fixture.ipfs, fixture.ipns]);
    assert.equal(await fixture.shell("echo here > ipns/local/file; cat ipns/local/file"), "here\n");
  });

  test("a name that points to a file is shown, whatever Import says, and cannot be listed", async () => {
    await using fixture = await MountFixture.make();
    const node = await fixture.open();
    await node.repo.config.set("Import.CidVersion", () => 1);
    const root = await fixture.add([["file", bytes("content")]]);
    await node.names.publish(await node.names.key("self"), `/ipfs/${root}/file`, { offline: true });
    await node.mounts.mount(fixture);
    assert.equal(await fixture.shell("stat -L -c %F ipns/local"), "directory\n");
    await assert.rejects(fixture.shell("ls ipns/local/"), /Input\/output error/);
  });

  for (const allowed of [true, false]) {
    test(`other users ${allowed ? "can use the mounts with Mounts.FuseAllowOther" : "cannot use the mounts by default"}`, async () => {
      await using fixture = await MountFixture.make();
      await chmod(fixture.folder, 0o755);
      const node = await fixture.open();
      await node.repo.config.set("Mounts.FuseAllowOther", () => allowed);
      await node.mounts.mount(fixture);
      const root = await fixture.add([["file", bytes("content")]]);
      const read = fixture.shell(`setpriv --reuid=${nobody} --regid=${nobody} --clear-groups cat ipfs/${root}/file`);
      if (allowed) assert.equal(await read, "content");
      else await assert.rejects(read, /Permission denied/);
    });
  }
});
