import assert from "node:assert/strict";
import { copyFile, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { migrateRepo } from "#node/migration/migrate.ts";
import { ConfigFile } from "#node/storage/repo/config.ts";
import { JsonText } from "#node/storage/repo/config_document.ts";
import { defaultSpec } from "#node/storage/repo/defaults.ts";
import { createIdentity } from "#node/storage/repo/identity.ts";
import type { JsonObject } from "#node/storage/repo/json.ts";
import { openRepo } from "#node/storage/repo/repo.ts";
import { emptyFolder } from "./support.ts";

/**
 * Parts of a file that a later Kubo has written, with keys and number notations that this node does
 * not use.
 */
const later = {
  API: '{"Authorizations":{"a":{"AllowedPaths":["/api/v0"],"AuthSecret":"bearer:x"}},"HTTPHeaders":{}}',
  AutoConf: "{}",
  Zeta: '{"b":[1e3,1.0,{"2":1,"1":12345678901234567890}],"a":"\\u003c"}',
  Internal: '{"Bitswap":{"EngineBlockstoreWorkerCount":18446744073709551615}}',
  Swarm: '{"ResourceMgr":{"Limit":1e3},"ConnMgr":{"LowWater":3e1,"SilencePeriod":"10s"},"AddrFilters":null}',
  Discovery: '{"MDNS":{"Enabled":false}}',
  Bootstrap: "[]",
  Version: '{"SwarmCheckEnabled":true}',
};

async function laterConfig(
  t: TestContext,
): Promise<{ config: ConfigFile; folder: string; text: () => Promise<string> }> {
  const folder = await emptyFolder(t);
  const identity = await createIdentity();
  const parts = { ...later, Datastore: JSON.stringify({ Spec: defaultSpec }), Identity: JSON.stringify(identity) };
  const members = Object.entries(parts).map(([key, value]) => `${JSON.stringify(key)}:${value}`);
  await writeFile(join(folder, "config"), `{${members.join(",")}}`);
  const text = async () => (await readFile(join(folder, "config"), "utf8")).replace(/\n */g, "").replaceAll(": ", ":");
  return { config: await ConfigFile.open(folder), folder, text };
}

test("parts that another program wrote survive each way of writing, with their order and formatting", async (t) => {
  const { config, text } = await laterConfig(t);
  const before = await text();
  /** Returns the file with these replacements and additional members. */
  const amended = (changes: readonly (readonly [string, string])[], more: string) =>
    `${changes.reduce((found, [old, now]) => found.replace(old, now), before).slice(0, -1)}${more}}`;

  await config.set("Gateway.RootRedirect", () => "/x");
  const redirect = ',"Gateway":{"RootRedirect":"/x"}';
  assert.equal(await text(), amended([], redirect));
  const peer = "/ip4/127.0.0.1/tcp/1";
  await config.update("Bootstrap", () => [peer]);
  assert.equal(await text(), amended([['"Bootstrap":[]', `"Bootstrap":["${peer}"]`]], redirect));
  await config.set("Bootstrap", () => []);

  await config.applyProfile("lowpower");
  const limits = '{"LowWater":20,"SilencePeriod":"10s","HighWater":40,"GracePeriod":"1m0s"}';
  const rest = ',"Routing":{"Type":"dhtclient"},"AutoNAT":{"ServiceMode":"disabled"},"Reprovider":{"Interval":"0"}';
  const profiled = amended([['{"LowWater":3e1,"SilencePeriod":"10s"}', limits]], redirect + rest);
  assert.equal(await text(), profiled);

  await config.replace(JSON.stringify(await config.show()));
  assert.equal(await text(), profiled);
  await config.edit(async (file) => writeFile(file, `${await readFile(file, "utf8")}\n`));
  assert.equal(await text(), profiled);
});

test("a replacement without a key of another program preserves that key, and one with it changes it", async (t) => {
  const { config, folder, text } = await laterConfig(t);
  const { Identity, Datastore, API, Discovery, Bootstrap } = await config.show();
  const before = await text();
  const { Authorizations: _, ...known } = API as JsonObject;
  const preserved = JSON.stringify({ Identity, Datastore, API: known, Discovery, Bootstrap });
  await config.replace(`{"Swarm":{"ResourceMgr":{"Limit":2e3},"ConnMgr":{"LowWater":30}},${preserved.slice(1)}`);
  assert.equal(await text(), before.replace('"Limit":1e3', '"Limit":2e3'));
  assert.deepEqual((await readdir(folder)).sort(), ["config", "config-pre-replace"]);
});

test("a value preserves the formatting of its JSON, and an existing unknown key can be changed", async (t) => {
  const { config, text } = await laterConfig(t);
  await config.set("Mine", () => new JsonText("[1e2, 12345678901234567890]"));
  assert.match(await text(), /"Mine":\[1e2,12345678901234567890\]/);
  await config.set("Swarm.ResourceMgr.Limit", () => new JsonText("1.50"));
  assert.match(await text(), /"ResourceMgr":\{"Limit":1\.50\}/);
  await assert.rejects(
    config.set("Swarm.Odd", () => 1),
    {
      message: 'failed to get config value: "Swarm key has no attributes"',
    },
  );
  assert.throws(() => new JsonText("["), { message: "unexpected end of JSON input" });
  assert.throws(() => new JsonText(`${"[".repeat(5000)}${"]".repeat(5000)}`), { message: "more than 64 levels" });
});

test("a migration preserves what another program wrote", async (t) => {
  const folder = await emptyFolder(t);
  const from = join(folder, "from");
  const to = join(folder, "to");
  await (await openRepo(from)).close();
  const file = await readFile(join(from, "config"), "utf8");
  await writeFile(
    join(from, "config"),
    file
      .replace(/^\{/, '{"Zeta": {"2": 1e3, "1": 1.0},')
      .replace('"HTTPHeaders": {}', '"Authorizations": {}, "HTTPHeaders": {}'),
  );
  await migrateRepo(from, to);
  const copied = (await readFile(join(to, "config"), "utf8")).replace(/\s+/g, "");
  assert.match(copied, /^\{"Zeta":\{"2":1e3,"1":1\.0\},"Identity":/);
  assert.match(copied, /"API":\{"Authorizations":\{\},"HTTPHeaders":\{\}\}/);
});

test("a replacement with which the node would not start is refused with the reason", async (t) => {
  const { config, text } = await laterConfig(t);
  const before = await text();
  const { Identity, Datastore } = await config.show();
  const refused: readonly (readonly [object, RegExp])[] = [
    [{}, /would not start with it: identity was not set in config/],
    [{ Identity: { PeerID: "x" }, Datastore }, /would not start with it: peer ID invalid: /],
    [{ Identity }, /would not start with it: Datastore\.Spec is missing/],
    [{ Identity, Datastore: { Spec: { type: "odd" } } }, /another Datastore\.Spec needs another repo/],
  ];
  for (const [document, message] of refused)
    await assert.rejects(config.replace(JSON.stringify(document)), { message });
  assert.equal(await text(), before);
});

test("a repo that does not start with its config names the backups of it", async (t) => {
  const folder = await emptyFolder(t);
  const repo = await openRepo(folder);
  await repo.config.replace(JSON.stringify(await repo.config.show()));
  await repo.close();
  const file = join(folder, "config");
  await writeFile(file, "{}");
  await assert.rejects(openRepo(folder), {
    message: `identity was not set in config (was 'ipfs init' run?). ${file} has backups next to it: config-pre-replace. Restore one of them`,
  });
  await copyFile(join(folder, "config-pre-replace"), file);
  await (await openRepo(folder)).close();
});
