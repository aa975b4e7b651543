import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Place } from "./support.ts";

const configOf = async (repo: string) => JSON.parse(await readFile(join(repo, "config"), "utf8"));

describe("init", () => {
  test("without a profile makes what the reference makes", async () => {
    await using place = await Place.make();
    await place.does(["init"]);
    const { Addresses, Bootstrap, Discovery } = await configOf(place.repo);
    assert.equal(Addresses.API, "/ip4/127.0.0.1/tcp/5001");
    assert.equal(Addresses.Gateway, "/ip4/127.0.0.1/tcp/8080");
    assert.equal(Addresses.Swarm.length, 4);
    assert.equal(Bootstrap.length, 6);
    assert.equal(Discovery.MDNS.Enabled, true);
    assert.equal(await readFile(join(place.repo, "version"), "utf8"), "11\n");
  });

  test("applies several profiles, and finds the folder in every place where it may be named", async () => {
    await using place = await Place.make();
    for (const [name, args, env] of [
      ["one", ["-p", "test,lowpower", "--repo-dir", "one"], {}],
      ["two", ["-c", "two", "--profile=test,lowpower", "-e"], {}],
      ["three", ["-p=test,lowpower"], { IPFS_PATH: "three" }],
      [".ipfs", ["-ptest,lowpower"], { IPFS_PATH: "", HOME: place.folder }],
    ] as const) {
      await place.does(["init", ...args], { env });
      const { Addresses, Routing } = await configOf(join(place.folder, name));
      assert.deepEqual([Addresses.API, Routing.Type], ["/ip4/127.0.0.1/tcp/0", "dhtclient"]);
    }
  });

  test("makes RSA keys, too", async () => {
    await using place = await Place.make();
    const printed = await place.does(["init", "-a", "rsa", "--bits=2048"]);
    assert.match(printed, /^generating 2048-bit RSA keypair\.\.\.done\npeer identity: Qm/);
    const [, id] = /peer identity: (\w+)/.exec(printed) ?? [];
    assert.equal((await configOf(place.repo)).Identity.PeerID, id);
    assert.equal(await place.does(["id", "-f", "<id>"]), id);
  });

  test("takes a config with its identity over", async () => {
    await using place = await Place.withRepo({ "Routing.Type": "none" });
    const given = join(place.repo, "config");
    assert.equal(
      await place.does(["--repo-dir=copy", "init", given]),
      `initializing IPFS node at ${join(place.folder, "copy")}\n`,
    );
    const [former, copy] = [await configOf(place.repo), await configOf(join(place.folder, "copy"))];
    assert.deepEqual(copy, former);
  });

  test("leaves a repo that is there alone", async () => {
    await using place = await Place.withRepo();
    const before = await readFile(join(place.repo, "config"), "utf8");
    const { code, stderr, stdout } = await place.node(["init"]);
    assert.deepEqual([code, stdout], [1, ""]);
    assert.equal(
      stderr,
      "Error: ipfs configuration file already exists!\nReinitializing would overwrite your keys.\n\n",
    );
    assert.equal(await readFile(join(place.repo, "config"), "utf8"), before);
  });

  test("refuses what cannot be, and makes nothing then", async () => {
    await using place = await Place.make();
    for (const [args, reason] of [
      [["-p", "test,nonsense"], "invalid configuration profile: nonsense"],
      [["-a", "rsa", "-b", "512"], "rsa keys must be >= 2048 bits to be useful"],
      [["-a", "nonsense"], "unrecognized key type: nonsense"],
      [["-b", "2048"], "number of key bits does not apply when using ed25519 keys"],
      [["a", "b"], "expected 1 argument(s), got 2"],
    ] as const) {
      const { code, stderr } = await place.node(["init", ...args]);
      assert.deepEqual([code, stderr], [1, `Error: ${reason}\n`]);
      assert.deepEqual(await readdir(place.folder), []);
    }
  });
});
