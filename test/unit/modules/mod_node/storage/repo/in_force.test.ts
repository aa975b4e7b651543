import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { ConfigFile } from "#node/storage/repo/config.ts";
import { watchConfig } from "#node/storage/repo/config_watch.ts";
import { ignoredKeys } from "#node/storage/repo/ignored_keys.ts";
import { laterKeys } from "#node/storage/repo/later_keys.ts";
import { configKeys } from "#node/storage/repo/schema.ts";
import { eventually } from "#test/support/eventually.ts";
import { amend, documentIn, newConfig } from "./support.ts";

const until = (condition: () => boolean) => eventually(String(condition), condition);

test("every key declares when it applies", () => {
  for (const [path, { applies }] of Object.entries(configKeys))
    assert.ok(["live", "start", "none"].includes(applies), path);
  for (const { instead } of Object.values(laterKeys))
    assert.ok(instead in configKeys || ["pubsub", "namesOverPubsub"].includes(instead), instead);
});

test("no key that has an effect is in the list of keys without effect", () => {
  const known = [...Object.keys(configKeys), ...Object.keys(laterKeys)];
  assert.deepEqual(
    known.filter((path) => path in ignoredKeys),
    [],
  );
});

test("each live key is changed on a running node by a test", async () => {
  const root = new URL("../../../../../", import.meta.url);
  const names = [
    "unit/modules/mod_http_api/live/",
    "unit/modules/mod_node/live/",
    "unit/modules/mod_http_gateway/live/",
  ];
  const files = names.flatMap((name) => {
    const folder = new URL(name, root);
    return readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts"))
      .map((file) => readFileSync(new URL(file, folder), "utf8"));
  });
  const others = [
    "unit/modules/mod_node/network/swarm/isolated/home.ts",
    "unit/modules/mod_node/mount/mode_and_time.test.ts",
  ].map((name) => readFileSync(new URL(name, root), "utf8"));
  const sources = [...files, ...others].join("\n");
  const live = Object.entries(configKeys).filter(([, { applies }]) => applies === "live");
  const unseen = live.flatMap(([path]) => (sources.includes(path) ? [] : [path]));
  // One key is read at each mount, which needs a system that permits it. The other one needs a
  // native package.
  assert.deepEqual(unseen, ["Mounts.FuseAllowOther", "Swarm.Transports.Network.QUIC"]);
  assert.ok(live.length >= 40, `${live.length}`);
});

test("a choice that is made at startup waits for the next start, under the key of the later version", async (t) => {
  const { config, folder } = await newConfig(t);
  await amend(folder, { Pubsub: { Enabled: true }, Ipns: { UsePubsub: true } });
  assert.deepEqual((await config.reread()).waiting, [
    { key: "Pubsub.Enabled", reason: undefined },
    { key: "Ipns.UsePubsub", reason: undefined },
  ]);
});

test("followers receive changes of their keys one after the other, before the call returns", async (t) => {
  const { config } = await newConfig(t);
  const heard: string[] = [];
  const end = config.follow(["Bootstrap", "Datastore.GCPeriod"], async (changed) => {
    heard.push(`begin ${[...changed]}`);
    await pause(5);
    heard.push(`end ${[...changed]}`);
  });
  await Promise.all([config.set("Bootstrap", () => ["a"]), config.set("Datastore.GCPeriod", () => "2h")]);
  assert.deepEqual(heard, ["begin Bootstrap", "end Bootstrap", "begin Datastore.GCPeriod", "end Datastore.GCPeriod"]);
  await config.set("Bootstrap", () => ["a"]);
  await config.set("Datastore.StorageMax", () => "1GB");
  assert.equal(heard.length, 4);
  end();
  await config.set("Bootstrap", () => ["b"]);
  assert.equal(heard.length, 4);
});

test("a value that cannot be applied is written, waits with the reason, and is tried again", async (t) => {
  const { config, folder } = await newConfig(t);
  let isTaken = true;
  const applied: string[][] = [];
  config.listen((change) => void applied.push([...change.applied]));
  config.follow(["Bootstrap"], () => {
    if (isTaken) throw new Error("it cannot be");
  });
  await config.set("Bootstrap", () => ["a"]);
  assert.deepEqual((await documentIn(folder)).Bootstrap, ["a"]);
  assert.deepEqual(config.waiting, [{ key: "Bootstrap", reason: "it cannot be" }]);
  isTaken = false;
  assert.deepEqual((await config.reread()).applied, ["Bootstrap"]);
  assert.deepEqual(config.waiting, []);
  assert.deepEqual(applied, [[], ["Bootstrap"]]);
});

test("a waiting value that is changed back no longer waits", async (t) => {
  const { config } = await newConfig(t);
  const before = config.value("Identity.PeerID");
  await amend(config.path.replace(/config$/, ""), { Identity: { PeerID: "another", PrivKey: "x" } });
  await config.reread();
  assert.deepEqual(
    config.waiting.map(({ key }) => key),
    ["Identity.PeerID", "Identity.PrivKey"],
  );
  await amend(config.path.replace(/config$/, ""), { Identity: { PeerID: before, PrivKey: "the private key" } });
  await config.reread();
  assert.deepEqual(config.waiting, []);
});

test("a later key is named while it waits", async (t) => {
  const { config, folder } = await newConfig(t);
  config.follow(["Reprovider.Strategy"], () => {
    throw new Error("unknown");
  });
  await amend(folder, { Provide: { Strategy: "odd" } });
  await config.reread();
  assert.deepEqual(config.waiting, [{ key: "Provide.Strategy", reason: "unknown" }]);
});

test("a file that is edited by hand or replaced is applied, and a half-written one is not", async (t) => {
  const { config, folder } = await newConfig(t);
  const warnings: string[] = [];
  t.after(watchConfig(config, (sentence) => warnings.push(sentence)));
  await amend(folder, { Bootstrap: ["one"] });
  await until(() => config.value("Bootstrap")?.[0] === "one");
  const document = { ...(await documentIn(folder)), Bootstrap: ["two"] };
  await writeFile(join(folder, "draft"), JSON.stringify(document));
  await rename(join(folder, "draft"), config.path);
  await until(() => config.value("Bootstrap")?.[0] === "two");
  await writeFile(config.path, JSON.stringify(document).slice(0, 100));
  await until(() => warnings.length > 0);
  assert.match(
    warnings[0] ?? "",
    /config was changed but cannot be applied; the previous values stay: failure to decode/,
  );
  assert.equal(config.value("Bootstrap")?.[0], "two");
  await writeFile(config.path, JSON.stringify({ ...document, Bootstrap: ["three"] }));
  await until(() => config.value("Bootstrap")?.[0] === "three");
});

test("values that were written but not applied when a process was killed apply to the next one", async (t) => {
  const { config, folder } = await newConfig(t);
  config.follow(["Bootstrap"], () => new Promise(() => undefined));
  void config.set("Bootstrap", () => ["written"]);
  await until(() => config.value("Bootstrap")?.[0] === "written");
  assert.deepEqual((await ConfigFile.open(folder)).value("Bootstrap"), ["written"]);
});
