import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Sandbox } from "./support.ts";

const configOf = async (repo: string) => JSON.parse(await readFile(join(repo, "config"), "utf8"));

describe("init", () => {
  test("init without a profile creates the same config as go-ipfs", async () => {
    await using sandbox = await Sandbox.make();
    await sandbox.does(["init"]);
    const { Addresses, Bootstrap, Discovery } = await configOf(sandbox.repo);
    assert.equal(Addresses.API, "/ip4/127.0.0.1/tcp/5001");
    assert.equal(Addresses.Gateway, "/ip4/127.0.0.1/tcp/8080");
    assert.equal(Addresses.Swarm.length, 4);
    assert.equal(Bootstrap.length, 6);
    assert.equal(Discovery.MDNS.Enabled, true);
    assert.equal(await readFile(join(sandbox.repo, "version"), "utf8"), "11\n");
  });

  test("init applies several profiles, and finds the folder by each option and variable that can name it", async () => {
    await using sandbox = await Sandbox.make();
    for (const [name, args, env] of [
      ["one", ["-p", "test,lowpower", "--repo-dir", "one"], {}],
      ["two", ["-c", "two", "--profile=test,lowpower", "-e"], {}],
      ["three", ["-p=test,lowpower"], { IPFS_PATH: "three" }],
      [".ipfs", ["-ptest,lowpower"], { IPFS_PATH: "", HOME: sandbox.folder }],
    ] as const) {
      await sandbox.does(["init", ...args], { env });
      const { Addresses, Routing } = await configOf(join(sandbox.folder, name));
      assert.deepEqual([Addresses.API, Routing.Type], ["/ip4/127.0.0.1/tcp/0", "dhtclient"]);
    }
  });

  test("init at the level 0.43 leaves out the keys that keep Kubo 0.43 from starting", async () => {
    await using sandbox = await Sandbox.make();
    await sandbox.does(["init"], { env: { MODHOST_API_LEVEL: "0.43" } });
    const { Experimental, Provider, Reprovider } = await configOf(sandbox.repo);
    assert.equal("AcceleratedDHTClient" in Experimental, false);
    assert.deepEqual([Provider, Reprovider], [{}, {}]);
    await sandbox.does(["config", "Ipns.RecordLifetime", "11h"], { env: { MODHOST_API_LEVEL: "0.43" } });
    assert.equal("AcceleratedDHTClient" in (await configOf(sandbox.repo)).Experimental, false, "it stays away");
  });

  test("init creates RSA keys", async () => {
    await using sandbox = await Sandbox.make();
    const printed = await sandbox.does(["init", "-a", "rsa", "--bits=2048"]);
    assert.match(printed, /^generating 2048-bit RSA keypair\.\.\.done\npeer identity: Qm/);
    const [, id] = /peer identity: (\w+)/.exec(printed) ?? [];
    assert.equal((await configOf(sandbox.repo)).Identity.PeerID, id);
    assert.equal(await sandbox.does(["id", "-f", "<id>"]), id);
  });

  test("init adopts a config with its identity", async () => {
    await using sandbox = await Sandbox.withRepo({ "Routing.Type": "none" });
    const given = join(sandbox.repo, "config");
    assert.equal(
      await sandbox.does(["--repo-dir=copy", "init", given]),
      `initializing IPFS node at ${join(sandbox.folder, "copy")}\n`,
    );
    const previous = await configOf(sandbox.repo);
    const copy = await configOf(join(sandbox.folder, "copy"));
    assert.deepEqual(copy, previous);
  });

  test("init does not touch an existing repo", async () => {
    await using sandbox = await Sandbox.withRepo();
    const before = await readFile(join(sandbox.repo, "config"), "utf8");
    const { code, stderr, stdout } = await sandbox.node(["init"]);
    assert.deepEqual([code, stdout], [1, ""]);
    assert.equal(
      stderr,
      "Error: ipfs configuration file already exists!\nReinitializing would overwrite your keys.\n\n",
    );
    assert.equal(await readFile(join(sandbox.repo, "config"), "utf8"), before);
  });

  test("init refuses invalid options, and then creates nothing", async () => {
    await using sandbox = await Sandbox.make();
    for (const [args, reason] of [
      [["-p", "test,nonsense"], "invalid configuration profile: nonsense"],
      [["-a", "rsa", "-b", "512"], "rsa keys must be >= 2048 bits to be useful"],
      [["-a", "nonsense"], "unrecognized key type: nonsense"],
      [["-b", "2048"], "number of key bits does not apply when using ed25519 keys"],
      [["a", "b"], "expected 1 argument(s), got 2"],
    ] as const) {
      const { code, stderr } = await sandbox.node(["init", ...args]);
      assert.deepEqual([code, stderr], [1, `Error: ${reason}\n`]);
      assert.deepEqual(await readdir(sandbox.folder), []);
    }
  });
});
