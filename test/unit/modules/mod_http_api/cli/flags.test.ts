/** Effects of the daemon's flags. */
import assert from "node:assert/strict";
import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { skip } from "#test/unit/modules/mod_node/mount/support.ts";
import { call, Sandbox, urlOf } from "./support.ts";

describe("publish and subscribe", () => {
  const states = async (sandbox: Sandbox) => {
    const url = urlOf(await sandbox.api());
    return [(await call(url, "pubsub/ls")).text, (await call(url, "name/pubsub/state")).text];
  };
  const refusal = "experimental pubsub feature not enabled. Run daemon with --enable-pubsub-experiment to use.";

  for (const [flag, on, names] of [
    [undefined, false, false],
    ["--enable-pubsub-experiment", true, false],
    ["--enable-namesys-pubsub", true, true],
  ] as const) {
    test(`pubsub with ${flag ?? "neither flag"}: ${on ? "on" : "off"}, for names ${names ? "too" : "not"}`, async () => {
      await using sandbox = await Sandbox.withRepo();
      const daemon = await sandbox.serve(flag === undefined ? [] : [flag]);
      const [topics, state] = await states(sandbox);
      const { Message, Strings } = JSON.parse(topics ?? "");
      if (on) assert.deepEqual([Strings ?? [], Message], [[], undefined]);
      else assert.equal(Message, refusal);
      assert.deepEqual(JSON.parse(state ?? ""), { Enabled: names });
      await daemon.stop();
    });
  }
});

test("--routing overrides the config without changing the file", async () => {
  await using sandbox = await Sandbox.withRepo();
  const daemon = await sandbox.serve(["--routing=none"]);
  const url = urlOf(await sandbox.api());
  const { text } = await call(url, "dht/findpeer?arg=12D3KooW9tRMuwByUT3JaWtKwrWb8Nq1sNof4jT37B8kKVbNsGrJ");
  assert.match(text, /routing: not found/);
  assert.deepEqual(JSON.parse((await call(url, "config?arg=Routing.Type")).text).Value, "dht");
  await daemon.stop();
});

describe("a republish period out of bounds", () => {
  const period = { "Ipns.RepublishPeriod": "40s" };

  test("a republish period out of bounds is allowed with the flag -D", async () => {
    await using sandbox = await Sandbox.withRepo(period);
    const daemon = await sandbox.serve(["-D"]);
    await daemon.stop();
  });

  for (const env of [{ DEBUG: "T" }, { IPFS_LOGGING: "debug" }]) {
    test(`a republish period out of bounds is allowed with the variable ${Object.keys(env)}`, async () => {
      await using sandbox = await Sandbox.withRepo(period);
      const daemon = await sandbox.daemon([], env);
      assert.equal((await daemon.stop()).code, 0);
    });
  }

  test("a republish period out of bounds is refused otherwise", async () => {
    await using sandbox = await Sandbox.withRepo(period);
    const { code, stderr } = await sandbox.run(["daemon"], { env: { DEBUG: "libp2p:*" } });
    assert.equal(code, 1);
    assert.match(stderr, /config setting IPNS.RepublishPeriod is not between 1min and 1day: 40s\n/);
  });
});

test("--mount mounts both paths before the daemon is ready, and unmounts them", { skip }, async () => {
  await using sandbox = await Sandbox.withRepo();
  const ipfs = join(sandbox.folder, "ipfs");
  const ipns = join(sandbox.folder, "ipns");
  await Promise.all([ipfs, ipns].map((folder) => mkdir(folder)));
  const cid = (await sandbox.does(["add", "-Q"], { stdin: "hello\n" })).trim();
  const daemon = await sandbox.serve(["--mount", `--mount-ipfs=${ipfs}`, `--mount-ipns=${ipns}`]);
  const said = daemon.lines().filter((line) => !/^Swarm |: /.test(line) || line.includes("mounted"));
  assert.deepEqual(said.slice(1, 3), [`IPFS mounted at: ${ipfs}`, `IPNS mounted at: ${ipns}`]);
  assert.equal(await readFile(join(ipfs, cid), "utf8"), "hello\n");
  await daemon.stop();
  assert.deepEqual(await readdir(ipfs), []);

  const nowhere = sandbox.serve(["--mount", `--mount-ipfs=${sandbox.folder}/none`]);
  await assert.rejects(nowhere, { message: `mountpoint does not exist: ${sandbox.folder}/none` });
  assert.equal(await sandbox.api(), undefined);
});

test("--data moves blocks and metadata there, while config, keys and the file api stay in the repo", async () => {
  await using sandbox = await Sandbox.withRepo();
  const old = (await sandbox.does(["add", "-Q"], { stdin: "old\n" })).trim();
  const daemon = await sandbox.serve(["--offline", "--data=elsewhere"]);
  assert.deepEqual((await readdir(join(sandbox.folder, "elsewhere"))).sort(), [
    "metadata",
    "repo.lease",
    "repo.lock",
    "segments",
  ]);
  const url = urlOf(await sandbox.api());
  assert.equal((await call(url, `cat?arg=${old}`)).text, "old\n");
  await call(url, "key/gen?arg=late");
  await call(url, "config?arg=Gateway.NoFetch&arg=true&bool=true");
  const late = (await sandbox.does(["add", "-Q"], { stdin: "late\n" })).trim();
  assert.match(
    (await daemon.stop()).stderr,
    /^modhost: copying the content of .+ to .+\/elsewhere\/segments; this happens once\n$/,
  );
  assert.equal((await readdir(join(sandbox.repo, "keystore"))).length, 1);
  assert.equal(JSON.parse(await readFile(join(sandbox.repo, "config"), "utf8")).Gateway.NoFetch, true);
  assert.equal((await sandbox.node(["block", "stat", late])).code, 1);
  assert.equal(await sandbox.does(["--data=elsewhere", "cat", late]), "late\n");
});

test("flags without a meaning here are accepted, and some of them are reported", async () => {
  await using sandbox = await Sandbox.withRepo();
  const flags = ["--enable-gc", "--manage-fdlimit=false", "--enable-pubsub-experiment", "--enable-namesys-pubsub"];
  const daemon = await sandbox.serve(["--offline", ...flags, "--unrestricted-api", "--enc=json"]);
  assert.equal((await daemon.stop()).stderr, "modhost: --unrestricted-api has no effect\n");
});

test("flags that stand for a config value apply while the daemon runs, and do not change the file", async () => {
  await using sandbox = await Sandbox.withRepo();
  const daemon = await sandbox.serve(["--offline", "--writable", "--routing=dhtclient"]);
  assert.match(daemon.lines().join("\n"), /^Gateway \(writable\) server listening on /m);
  await daemon.stop();
  const config = JSON.parse(await readFile(join(sandbox.repo, "config"), "utf8"));
  assert.deepEqual([config.Routing.Type, config.Gateway.Writable], ["dht", false]);
});
