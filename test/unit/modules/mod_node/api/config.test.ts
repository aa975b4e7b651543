import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { memoryNode } from "./support.ts";

test("values are written as they are, or parsed from text", async (t) => {
  const { config } = await memoryNode(t);
  assert.equal(await config.set("Discovery.MDNS.Enabled", true), undefined);
  assert.equal(await config.get("Discovery.MDNS.Enabled"), true);
  await config.set("Discovery.MDNS", { Enabled: false, Interval: 7 });
  assert.deepEqual(await config.get("Discovery.MDNS"), { Enabled: false, Interval: 7 });
  await config.set("Discovery.MDNS.Enabled", "true", { bool: true });
  await config.set("Discovery.MDNS.Interval", "9", { json: true });
  assert.deepEqual(await config.get("Discovery.MDNS"), { Enabled: true, Interval: 9 });
  await assert.rejects(config.set("Discovery.MDNS.Interval", "9"), { name: "NodeError" });
  await assert.rejects(config.set("Discovery", "{", { json: true }), /^NodeError: failed to unmarshal json\./);
  await assert.rejects(config.get("Identity.PrivKey"), { name: "NodeError" });
});

test("a replaced document preserves the secrets that are not shown", async (t) => {
  const { config } = await memoryNode(t);
  const secret = async () => JSON.parse(await readFile(config.path, "utf8")).Identity.PrivKey;
  const before = await secret();
  const shown = await config.getAll();
  assert.equal(JSON.stringify(shown).includes(before), false);
  await config.replace({
    ...shown,
    Bootstrap: ["/ip4/127.0.0.1/tcp/1/p2p/QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"],
  });
  assert.equal(((await config.get("Bootstrap")) as unknown[]).length, 1);
  await config.replace(JSON.stringify(shown));
  assert.deepEqual(await config.getAll(), shown);
  assert.equal(await secret(), before);
  await config.edit(async (file) => {
    const text = await readFile(file, "utf8");
    await writeFile(file, text.replace('"Enabled": false', '"Enabled": true'));
  });
  assert.notDeepEqual(await config.getAll(), shown);
});

test("profiles are listed and applied", async (t) => {
  const { config } = await memoryNode(t);
  const { profiles } = config;
  const names = (await profiles.list()).map(({ name }) => name);
  assert.ok(names.includes("test") && names.includes("server"));
  const { original, updated } = await profiles.apply("test", { dryRun: true });
  assert.deepEqual(await config.getAll(), original);
  assert.deepEqual(await profiles.apply("test"), { original, updated });
  assert.deepEqual(await config.getAll(), updated);
  await assert.rejects(profiles.apply("none"), { name: "NodeError" });
});
