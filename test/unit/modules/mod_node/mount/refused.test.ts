import assert from "node:assert/strict";
import { chmod, chown, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { bytes, MountPlace, skip } from "./support.ts";

const program = fileURLToPath(new URL("../../../../fixtures/mount/node.ts", import.meta.url));
const nobody = 65534;

describe("who may mount, and who may use what is mounted", { skip }, () => {
  /** What a node that fails to mount says. */
  const failing = (place: MountPlace, before: string) =>
    place.shell(`! ${before} "${process.execPath}" --conditions=source "${program}" repo ipfs ipns 2>&1`);

  test("without the device nothing is mounted, and it is said why", async () => {
    await using place = await MountPlace.make();
    // A view of the file system of its own, in which it is not there.
    const without = `mount -t tmpfs none /dev; for d in null:3 urandom:9; do mknod -m 666 /dev/\${d%:*} c 1 \${d#*:}; done`;
    const said = await failing(place, `unshare -m bash -ec '${without}; exec "$@"' -`);
    assert.match(
      said,
      /NodeError: fuse: fuse device not found: \/dev\/fuse; load the kernel's module `fuse`, or allow/,
    );
    assert.deepEqual(await place.mounted(), []);
  });

  test("other users than root are told so", async () => {
    await using place = await MountPlace.make();
    for (const path of [place.folder, place.ipfs, place.ipns]) await chown(path, nobody, nobody);
    // It may read the sources wherever they are.
    const read = "--inh-caps=+dac_read_search --ambient-caps=+dac_read_search";
    const said = await failing(place, `setpriv --reuid=${nobody} --regid=${nobody} --clear-groups ${read}`);
    assert.match(said, new RegExp(`NodeError: fuse: only root can mount, and this is user ${nobody}`));
    assert.deepEqual(await place.mounted(), []);
  });

  test("both are mounted or none", async () => {
    await using place = await MountPlace.make();
    const node = await place.open();
    // By then the other one is mounted over it.
    const inside = join(place.ipfs, "inside");
    await mkdir(inside);
    await assert.rejects(node.mounts.mount({ ipfs: place.ipfs, ipns: inside }), /mount point does not exist/);
    assert.deepEqual(await place.mounted(), []);
    assert.equal(node.mounts.active, false);
    await node.mounts.mount(place);
    assert.equal((await place.mounted()).length, 2);
  });

  test("two who mount at the same time come one after the other", async () => {
    await using place = await MountPlace.make();
    const node = await place.open();
    await Promise.all([node.mounts.mount(place), node.mounts.mount(place), node.mounts.mount(place)]);
    assert.deepEqual((await place.mounted()).sort(), [place.ipfs, place.ipns]);
    assert.equal(await place.shell("echo here > ipns/local/file; cat ipns/local/file"), "here\n");
  });

  test("a name that stands for a file is there beside the others, whatever Import says, and cannot be listed", async () => {
    await using place = await MountPlace.make();
    const node = await place.open();
    await node.repo.config.set("Import.CidVersion", () => 1);
    const root = await place.add([["file", bytes("content")]]);
    await node.names.publish(await node.names.key("self"), `/ipfs/${root}/file`, { offline: true });
    await node.mounts.mount(place);
    assert.equal(await place.shell("stat -L -c %F ipns/local"), "directory\n");
    await assert.rejects(place.shell("ls ipns/local/"), /Input\/output error/);
  });

  for (const allowed of [true, false]) {
    test(`other users ${allowed ? "can use it when Mounts.FuseAllowOther says so" : "cannot use it otherwise"}`, async () => {
      await using place = await MountPlace.make();
      await chmod(place.folder, 0o755);
      const node = await place.open();
      await node.repo.config.set("Mounts.FuseAllowOther", () => allowed);
      await node.mounts.mount(place);
      const root = await place.add([["file", bytes("content")]]);
      const read = place.shell(`setpriv --reuid=${nobody} --regid=${nobody} --clear-groups cat ipfs/${root}/file`);
      if (allowed) assert.equal(await read, "content");
      else await assert.rejects(read, /Permission denied/);
    });
  }
});
