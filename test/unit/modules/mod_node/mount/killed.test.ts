import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { clientNode } from "#node/library/client_node.ts";
import { eventually } from "#test/support/eventually.ts";
import { bytes, MountPlace, skip } from "./support.ts";

const program = fileURLToPath(new URL("../../../../fixtures/mount/node.ts", import.meta.url));

/** A node in a process of its own, with its mounts. */
async function start(place: MountPlace) {
  const { NODE_OPTIONS: _, ...env } = process.env;
  const node = spawn(process.execPath, ["--conditions=source", program, place.repo, place.ipfs, place.ipns], {
    stdio: ["ignore", "pipe", "inherit"],
    env,
  });
  const [line] = await Promise.race([
    once(createInterface(node.stdout), "line") as Promise<[string]>,
    once(node, "exit").then(() => Promise.reject(new Error("The node has ended"))),
  ]);
  return { node, holder: Number(line), ended: once(node, "exit") };
}

/** Resolves when no process has this number any more. */
async function gone(pid: number): Promise<void> {
  await eventually(`process ${pid} is gone`, () => {
    try {
      return !process.kill(pid, 0);
    } catch {
      return true;
    }
  });
}

async function nothingMounted(place: MountPlace): Promise<void> {
  await eventually("nothing is mounted", async () => (await place.mounted()).length === 0);
}

describe("whoever is killed, nothing stays mounted", { skip }, () => {
  test("the node: the other process notices", async () => {
    await using place = await MountPlace.make();
    const { node, holder, ended } = await start(place);
    assert.equal((await place.mounted()).length, 2);
    node.kill("SIGKILL");
    await ended;
    await gone(holder);
    assert.deepEqual(await place.mounted(), []);
  });

  test("the process that holds the mounts: the node notices, and can mount again", async () => {
    await using place = await MountPlace.make();
    const node = await place.mount();
    const holder = node.mounts.pid as number;
    await place.shell("echo kept > ipns/local/kept");
    process.kill(holder, "SIGKILL");
    await nothingMounted(place);
    await node.mounts.mount(place);
    assert.equal(await place.shell("cat ipns/local/kept"), "kept\n");
    assert.equal((await place.mounted()).length, 2);
  });

  for (const order of ["the holder first", "the node first", "the holder first, with a file open"] as const) {
    test(`both, ${order}: the next start unmounts`, async () => {
      await using place = await MountPlace.make();
      const { node, holder, ended } = await start(place);
      const user = order.endsWith("open") ? spawn("sleep", ["60"], { cwd: place.ipns, stdio: "ignore" }) : undefined;
      // Stopped, neither can notice that the other is gone.
      process.kill(holder, "SIGSTOP");
      node.kill("SIGSTOP");
      if (order === "the node first") {
        node.kill("SIGKILL");
        await ended;
        process.kill(holder, "SIGKILL");
      } else {
        process.kill(holder, "SIGKILL");
        node.kill("SIGKILL");
        await ended;
      }
      await gone(holder);
      assert.equal((await place.mounted()).length, 2);
      await place.open();
      assert.deepEqual(await place.mounted(), []);
      await place.node.mounts.mount(place);
      assert.equal((await place.mounted()).length, 2);
      user?.kill();
    });
  }

  test("the next start unmounts what a process holds that does nothing any more", async () => {
    await using place = await MountPlace.make();
    const { node, holder, ended } = await start(place);
    process.kill(holder, "SIGSTOP");
    node.kill("SIGKILL");
    await ended;
    try {
      await place.open();
      assert.deepEqual(await place.mounted(), []);
    } finally {
      process.kill(holder, "SIGCONT");
    }
    await gone(holder);
  });

  test("somebody who unmounts by hand ends it; the node goes on", async () => {
    await using place = await MountPlace.make();
    const node = await place.mount();
    await place.shell("umount -i ipfs ipns");
    await node.mounts.unmount();
    assert.equal(node.mounts.active, false);
    await node.mounts.mount(place);
    assert.equal((await place.mounted()).length, 2);
  });

  test("who unmounts /ipns by hand can publish names again at once; /ipfs stays", async () => {
    await using place = await MountPlace.make();
    const node = await place.mount();
    const { name } = clientNode(node);
    const root = await place.add([["file", bytes("content")]]);
    const publish = () => name.publish(`/ipfs/${root}`, { allowOffline: true });
    await assert.rejects(publish(), { message: "cannot manually publish while IPNS is mounted" });
    await place.shell("echo kept > ipns/local/kept; umount -i ipns");
    await publish();
    assert.deepEqual(await place.mounted(), [place.ipfs]);
    assert.equal(await place.shell(`cat ipfs/${root}/file`), "content");
    await node.mounts.mount(place);
    assert.equal((await place.mounted()).length, 2);
    await assert.rejects(publish(), { message: "cannot manually publish while IPNS is mounted" });
    assert.equal(await place.shell("cat ipns/local/file"), "content");
  });

  test("what a program has synced of a folder is there after the node was killed: what was moved, made and removed in it", async () => {
    await using place = await MountPlace.make();
    const { node, holder, ended } = await start(place);
    const python = [
      "import os",
      "def sync(p):",
      "  d = os.open(p, os.O_RDONLY); os.fsync(d); os.close(d)",
      "for name in ['old', 'gone']: open(name, 'w').write(name)",
      "sync('old'); sync('gone'); sync('.')",
      "os.rename('old', 'new'); os.mkdir('made'); os.symlink('new', 'link'); os.unlink('gone')",
      "sync('.')",
    ];
    await place.shell(`cd ipns/local/; python3 -c "${python.join("\n")}"`);
    node.kill("SIGKILL");
    await ended;
    await gone(holder);
    await place.mount();
    assert.equal(await place.shell("cd ipns/local/; ls; cat link"), "link\nmade\nnew\nold");
  });

  test("a stop in good order keeps what was written", async () => {
    await using place = await MountPlace.make();
    const { node, holder, ended } = await start(place);
    await place.shell("echo written > ipns/local/file");
    node.kill("SIGTERM");
    await ended;
    await gone(holder);
    assert.deepEqual(await place.mounted(), []);
    await place.mount();
    assert.equal(await place.shell("cat ipns/local/file"), "written\n");
  });

  test("a stop cuts off who has a folder or a file open, and keeps what was written to it", async () => {
    await using place = await MountPlace.make();
    await place.mount();
    const script = "cd ipns/local/; mkdir in; cd in; exec 3> open; echo written >&3; echo ready; sleep 60";
    const user = spawn("bash", ["-c", script], { cwd: place.folder, stdio: ["ignore", "pipe", "ignore"] });
    try {
      await once(user.stdout, "data");
      await place.close();
      assert.deepEqual(await place.mounted(), []);
    } finally {
      user.kill();
    }
    await place.mount();
    assert.equal(await place.shell("cat ipns/local/in/open"), "written\n");
  });
});
