import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { clientNode } from "#node/library/client_node.ts";
import { eventually } from "#test/support/eventually.ts";
import { bytes, MountFixture, skip } from "./support.ts";

const program = fileURLToPath(new URL("../../../../fixtures/mount/node.ts", import.meta.url));

/** Starts a node in a process of its own, with its mounts. */
async function start(fixture: MountFixture) {
  const { NODE_OPTIONS: _, ...env } = process.env;
  const node = spawn(process.execPath, ["--conditions=source", program, fixture.repo, fixture.ipfs, fixture.ipns], {
    stdio: ["ignore", "pipe", "inherit"],
    env,
  });
  const [line] = await Promise.race([
    once(createInterface(node.stdout), "line") as Promise<[string]>,
    once(node, "exit").then(() => Promise.reject(new Error("The node has ended"))),
  ]);
  return { node, holder: Number(line), ended: once(node, "exit") };
}

/** Resolves when the process no longer exists. */
async function gone(pid: number): Promise<void> {
  await eventually(`process ${pid} is gone`, () => {
    try {
      return !process.kill(pid, 0);
    } catch {
      return true;
    }
  });
}

async function nothingMounted(fixture: MountFixture): Promise<void> {
  await eventually("nothing is mounted", async () => (await fixture.mounted()).length === 0);
}

describe("folders do not stay mounted", { skip }, () => {
  test("if the node is killed: the mount process unmounts", async () => {
    await using fixture = await MountFixture.make();
    const { node, holder, ended } = await start(fixture);
    assert.equal((await fixture.mounted()).length, 2);
    node.kill("SIGKILL");
    await ended;
    await gone(holder);
    assert.deepEqual(await fixture.mounted(), []);
  });

  test("if the mount process is killed: the node ends the mounts, and can mount again", async () => {
    await using fixture = await MountFixture.make();
    const node = await fixture.mount();
    const holder = node.mounts.pid as number;
    await fixture.shell("echo kept > ipns/local/kept");
    process.kill(holder, "SIGKILL");
    await nothingMounted(fixture);
    await node.mounts.mount(fixture);
    assert.equal(await fixture.shell("cat ipns/local/kept"), "kept\n");
    assert.equal((await fixture.mounted()).length, 2);
  });

  for (const order of ["the holder first", "the node first", "the holder first, with a file open"] as const) {
    test(`if both are killed, ${order}: the next start unmounts`, async () => {
      await using fixture = await MountFixture.make();
      const { node, holder, ended } = await start(fixture);
      const user = order.endsWith("open") ? spawn("sleep", ["60"], { cwd: fixture.ipns, stdio: "ignore" }) : undefined;
      // A stopped process cannot notice that the other one has ended.
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
      assert.equal((await fixture.mounted()).length, 2);
      await fixture.open();
      assert.deepEqual(await fixture.mounted(), []);
      await fixture.node.mounts.mount(fixture);
      assert.equal((await fixture.mounted()).length, 2);
      user?.kill();
    });
  }

  test("if the mount process hangs: the next start unmounts", async () => {
    await using fixture = await MountFixture.make();
    const { node, holder, ended } = await start(fixture);
    process.kill(holder, "SIGSTOP");
    node.kill("SIGKILL");
    await ended;
    try {
      await fixture.open();
      assert.deepEqual(await fixture.mounted(), []);
    } finally {
      process.kill(holder, "SIGCONT");
    }
    await gone(holder);
  });

  test("if they are unmounted by hand: the node continues, and can mount again", async () => {
    await using fixture = await MountFixture.make();
    const node = await fixture.mount();
    await fixture.shell("umount -i ipfs ipns");
    await node.mounts.unmount();
    assert.equal(node.mounts.active, false);
    await node.mounts.mount(fixture);
    assert.equal((await fixture.mounted()).length, 2);
  });

  test("an unmount of /ipns by hand allows publishing names at once, and leaves /ipfs mounted", async () => {
    await using fixture = await MountFixture.make();
    const node = await fixture.mount();
    const { name } = clientNode(node);
    const root = await fixture.add([["file", bytes("content")]]);
    const publish = () => name.publish(`/ipfs/${root}`, { allowOffline: true });
    await assert.rejects(publish(), { message: "cannot manually publish while IPNS is mounted" });
    await fixture.shell("echo kept > ipns/local/kept; umount -i ipns");
    await publish();
    assert.deepEqual(await fixture.mounted(), [fixture.ipfs]);
    assert.equal(await fixture.shell(`cat ipfs/${root}/file`), "content");
    await node.mounts.mount(fixture);
    assert.equal((await fixture.mounted()).length, 2);
    await assert.rejects(publish(), { message: "cannot manually publish while IPNS is mounted" });
    assert.equal(await fixture.shell("cat ipns/local/file"), "content");
  });

  test("moves, creations and removals that a program has synced survive a kill of the node", async () => {
    await using fixture = await MountFixture.make();
    const { node, holder, ended } = await start(fixture);
    const python = [
      "import os",
      "def sync(p):",
      "  d = os.open(p, os.O_RDONLY); os.fsync(d); os.close(d)",
      "for name in ['old', 'gone']: open(name, 'w').write(name)",
      "sync('old'); sync('gone'); sync('.')",
      "os.rename('old', 'new'); os.mkdir('made'); os.symlink('new', 'link'); os.unlink('gone')",
      "sync('.')",
    ];
    await fixture.shell(`cd ipns/local/; python3 -c "${python.join("\n")}"`);
    node.kill("SIGKILL");
    await ended;
    await gone(holder);
    await fixture.mount();
    assert.equal(await fixture.shell("cd ipns/local/; ls; cat link"), "link\nmade\nnew\nold");
  });

  test("an ordinary stop stores written content", async () => {
    await using fixture = await MountFixture.make();
    const { node, holder, ended } = await start(fixture);
    await fixture.shell("echo written > ipns/local/file");
    node.kill("SIGTERM");
    await ended;
    await gone(holder);
    assert.deepEqual(await fixture.mounted(), []);
    await fixture.mount();
    assert.equal(await fixture.shell("cat ipns/local/file"), "written\n");
  });

  test("a stop unmounts folders with open files, and stores what was written to them", async () => {
    await using fixture = await MountFixture.make();
    await fixture.mount();
    const script = "cd ipns/local/; mkdir in; cd in; exec 3> open; echo written >&3; echo ready; sleep 60";
    const user = spawn("bash", ["-c", script], { cwd: fixture.folder, stdio: ["ignore", "pipe", "ignore"] });
    try {
      await once(user.stdout, "data");
      await fixture.close();
      assert.deepEqual(await fixture.mounted(), []);
    } finally {
      user.kill();
    }
    await fixture.mount();
    assert.equal(await fixture.shell("cat ipns/local/in/open"), "written\n");
  });
});
