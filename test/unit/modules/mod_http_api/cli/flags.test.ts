/** What the flags of the daemon change. */
import assert from "node:assert/strict";
import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { skip } from "#test/unit/modules/mod_node/mount/support.ts";
import { call, Place, urlOf } from "./support.ts";

describe("publish and subscribe", () => {
  const states = async (place: Place) => {
    const url = urlOf(await place.api());
    return [(await call(url, "pubsub/ls")).text, (await call(url, "name/pubsub/state")).text];
  };
  const refusal = "experimental pubsub feature not enabled. Run daemon with --enable-pubsub-experiment to use.";

  for (const [flag, on, names] of [
    [undefined, false, false],
    ["--enable-pubsub-experiment", true, false],
    ["--enable-namesys-pubsub", true, true],
  ] as const) {
    test(`with ${flag ?? "neither flag"}: ${on ? "on" : "off"}, for names ${names ? "too" : "not"}`, async () => {
      await using place = await Place.withRepo();
      const daemon = await place.serve(flag === undefined ? [] : [flag]);
      const [topics, state] = await states(place);
      const { Message, Strings } = JSON.parse(topics ?? "");
      if (on) assert.deepEqual([Strings ?? [], Message], [[], undefined]);
      else assert.equal(Message, refusal);
      assert.deepEqual(JSON.parse(state ?? ""), { Enabled: names });
      await daemon.stop();
    });
  }
});

test("--routing goes over the config, and leaves it as it is", async () => {
  await using place = await Place.withRepo();
  const daemon = await place.serve(["--routing=none"]);
  const url = urlOf(await place.api());
  const { text } = await call(url, "dht/findpeer?arg=12D3KooW9tRMuwByUT3JaWtKwrWb8Nq1sNof4jT37B8kKVbNsGrJ");
  assert.match(text, /routing: not found/);
  assert.deepEqual(JSON.parse((await call(url, "config?arg=Routing.Type")).text).Value, "dht");
  await daemon.stop();
});

describe("names are published at a period out of bounds where debugging is asked for", () => {
  const period = { "Ipns.RepublishPeriod": "40s" };

  test("by the flag -D", async () => {
    await using place = await Place.withRepo(period);
    const daemon = await place.serve(["-D"]);
    await daemon.stop();
  });

  for (const env of [{ DEBUG: "T" }, { IPFS_LOGGING: "debug" }]) {
    test(`by ${Object.keys(env)}`, async () => {
      await using place = await Place.withRepo(period);
      const daemon = await place.daemon([], env);
      assert.equal((await daemon.stop()).code, 0);
    });
  }

  test("and by nothing else", async () => {
    await using place = await Place.withRepo(period);
    const { code, stderr } = await place.run(["daemon"], { env: { DEBUG: "libp2p:*" } });
    assert.equal(code, 1);
    assert.match(stderr, /config setting IPNS.RepublishPeriod is not between 1min and 1day: 40s\n/);
  });
});

test("--mount mounts both paths before the daemon is ready, and unmounts them", { skip }, async () => {
  await using place = await Place.withRepo();
  const [ipfs, ipns] = [join(place.folder, "ipfs"), join(place.folder, "ipns")];
  await Promise.all([ipfs, ipns].map((folder) => mkdir(folder)));
  const cid = (await place.does(["add", "-Q"], { stdin: "hello\n" })).trim();
  const daemon = await place.serve(["--mount", `--mount-ipfs=${ipfs}`, `--mount-ipns=${ipns}`]);
  const said = daemon.lines().filter((line) => !/^Swarm |: /.test(line) || line.includes("mounted"));
  assert.deepEqual(said.slice(1, 3), [`IPFS mounted at: ${ipfs}`, `IPNS mounted at: ${ipns}`]);
  assert.equal(await readFile(join(ipfs, cid), "utf8"), "hello\n");
  await daemon.stop();
  assert.deepEqual(await readdir(ipfs), []);

  const nowhere = place.serve(["--mount", `--mount-ipfs=${place.folder}/none`]);
  await assert.rejects(nowhere, { message: `mountpoint does not exist: ${place.folder}/none` });
  assert.equal(await place.api(), undefined);
});

test("--data keeps blocks and metadata there, while config, keys and the file api stay in the repo", async () => {
  await using place = await Place.withRepo();
  const old = (await place.does(["add", "-Q"], { stdin: "old\n" })).trim();
  const daemon = await place.serve(["--offline", "--data=elsewhere"]);
  assert.deepEqual((await readdir(join(place.folder, "elsewhere"))).sort(), [
    "metadata",
    "repo.lease",
    "repo.lock",
    "segments",
  ]);
  const url = urlOf(await place.api());
  assert.equal((await call(url, `cat?arg=${old}`)).text, "old\n");
  await call(url, "key/gen?arg=late");
  await call(url, "config?arg=Gateway.NoFetch&arg=true&bool=true");
  const late = (await place.does(["add", "-Q"], { stdin: "late\n" })).trim();
  assert.match(
    (await daemon.stop()).stderr,
    /^modhost: what .+ holds is being copied to .+\/elsewhere\/segments, once\n$/,
  );
  assert.equal((await readdir(join(place.repo, "keystore"))).length, 1);
  assert.equal(JSON.parse(await readFile(join(place.repo, "config"), "utf8")).Gateway.NoFetch, true);
  assert.equal((await place.node(["block", "stat", late])).code, 1);
  assert.equal(await place.does(["--data=elsewhere", "cat", late]), "late\n");
});

test("flags that mean nothing here are taken; some of them are told of", async () => {
  await using place = await Place.withRepo();
  const flags = ["--enable-gc", "--manage-fdlimit=false", "--enable-pubsub-experiment", "--enable-namesys-pubsub"];
  const daemon = await place.serve(["--offline", ...flags, "--unrestricted-api", "--enc=json"]);
  assert.equal((await daemon.stop()).stderr, "modhost: --unrestricted-api has no effect\n");
});

test("flags that stand for a value of the config count while the daemon runs, and leave the file as it is", async () => {
  await using place = await Place.withRepo();
  const daemon = await place.serve(["--offline", "--writable", "--routing=dhtclient"]);
  assert.match(daemon.lines().join("\n"), /^Gateway \(writable\) server listening on /m);
  await daemon.stop();
  const config = JSON.parse(await readFile(join(place.repo, "config"), "utf8"));
  assert.deepEqual([config.Routing.Type, config.Gateway.Writable], ["dht", false]);
});
