/** Keys that Kubo writes, in the configuration of this node. */
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { builtIn } from "#node/storage/repo/auto_values.ts";
import type { JsonObject } from "#node/storage/repo/json.ts";
import { laterKeys, laterSettings } from "#node/storage/repo/later_keys.ts";
import { openRepo, type Repo } from "#node/storage/repo/repo.ts";
import { startRpc } from "#test/unit/modules/mod_http_api/commands/support.ts";
import { emptyFolder } from "./support.ts";

/** A repo whose file has these parts in addition to its own. */
async function prepared(folder: string, parts: Readonly<Record<string, object>>): Promise<void> {
  await (await openRepo(folder, { profile: "test" })).close();
  const file = join(folder, "config");
  const document = JSON.parse(await readFile(file, "utf8")) as Record<string, object>;
  for (const [name, part] of Object.entries(parts)) {
    document[name] = Array.isArray(part) ? part : { ...document[name], ...part };
  }
  await writeFile(file, JSON.stringify(document));
}

describe("keys of later versions", () => {
  const cases: [path: string, written: unknown, instead: string, meant: unknown][] = [
    ["Pubsub.Enabled", true, "pubsub", true],
    ["Pubsub.Enabled", false, "pubsub", false],
    ["Ipns.UsePubsub", true, "namesOverPubsub", true],
    ["Routing.AcceleratedDHTClient", true, "Experimental.AcceleratedDHTClient", true],
    ["Swarm.RelayClient.Enabled", true, "Swarm.EnableAutoRelay", true],
    ["Swarm.RelayService.Enabled", false, "Swarm.EnableRelayHop", false],
    ["Provide.Enabled", false, "Experimental.StrategicProviding", true],
    ["Provide.Strategy", "pinned+mfs+entities", "Reprovider.Strategy", "pinned+mfs+entities"],
    ["Provide.Strategy", "flat", "Reprovider.Strategy", "all"],
    ["Provide.DHT.Interval", "22h", "Reprovider.Interval", "22h0m0s"],
    ["Provide.DHT.Interval", "0", "Reprovider.Interval", "0"],
  ];
  for (const [path, written, instead, meant] of cases) {
    test(`${path} ${JSON.stringify(written)} is ${instead} ${JSON.stringify(meant)}`, () => {
      const [first = "", ...below] = path.split(".");
      const document = { [first]: below.reduceRight<unknown>((value, name) => ({ [name]: value }), written) };
      const { overrides, ...switches } = laterSettings(document);
      assert.equal({ ...overrides, ...switches }[instead as "pubsub"], meant);
    });
  }

  test("every later key is tested above", () => {
    assert.deepEqual([...new Set(cases.map(([path]) => path))].sort(), Object.keys(laterKeys).sort());
  });

  test("null, missing values, and values of 0.9 set nothing", () => {
    const nothing = { overrides: {}, pubsub: undefined, namesOverPubsub: undefined, names: new Map() };
    assert.deepEqual(laterSettings({}), nothing);
    assert.deepEqual(laterSettings({ Pubsub: { Enabled: null }, Routing: { Type: "auto" }, Provide: null }), nothing);
  });

  test("a repo of Kubo without an announcement interval uses 22h", () => {
    const interval = (document: JsonObject) => laterSettings(document).overrides["Reprovider.Interval"];
    assert.equal(interval({ Provide: { DHT: {} }, Reprovider: {} }), "22h");
    assert.equal(interval({ Provide: {} }), "22h");
    assert.equal(interval({ Provide: { DHT: { Interval: "1h" } } }), "1h0m0s");
    assert.equal(interval({ Provide: {}, Reprovider: { Interval: "12h" } }), undefined);
    assert.equal(interval({ Reprovider: {} }), undefined);
  });

  test("letter case does not matter, as in go-ipfs", () => {
    assert.equal(laterSettings({ pubsub: { ENABLED: true } }).pubsub, true);
  });

  test("a value of another kind is refused with its key", () => {
    const wrong = () => laterSettings({ Pubsub: { Enabled: "yes" } });
    assert.throws(wrong, { message: /^failure to decode config: Pubsub\.Enabled: failed to unmarshal .* into a flag/ });
  });
});

test("later keys apply to a repo, options at startup override them, and they are not written elsewhere", async (t) => {
  const folder = await emptyFolder(t);
  await prepared(folder, { Provide: { Strategy: "roots", DHT: { Interval: "1h" } } });
  const read = async (overrides = {}) => {
    const repo: Repo = await openRepo(folder, { overrides });
    const { config } = repo;
    const found = [config.value("Reprovider.Strategy"), config.value("Reprovider.Interval")];
    await config.set("Gateway.NoFetch", () => true);
    await repo.close();
    return found;
  };
  assert.deepEqual(await read(), ["roots", "1h0m0s"]);
  assert.deepEqual(await read({ "Reprovider.Strategy": "pinned" }), ["pinned", "1h0m0s"]);
  const { Reprovider } = JSON.parse(await readFile(join(folder, "config"), "utf8"));
  assert.deepEqual([Reprovider.Strategy, Reprovider.Interval], ["all", "12h"]);
});

test("Pubsub.Enabled switches publish and subscribe, and the option node_pubsub overrides it", async () => {
  const start = (config: Record<string, unknown>) =>
    startRpc(
      { node_offline: false, ...config },
      {
        prepare: (folder) => prepared(join(folder, "data", "repo"), { Pubsub: { Enabled: false } }),
      },
    );
  const statusOf = async (config: Record<string, unknown>) => {
    await using host = await start(config);
    return (await host.call("pubsub/ls")).status;
  };
  assert.equal(await statusOf({}), 500);
  assert.equal(await statusOf({ node_pubsub: true }), 200);
});

test("`auto` in the bootstrap list means the built-in peers", async () => {
  const prepare = (folder: string) => prepared(join(folder, "data", "repo"), { Bootstrap: ["auto"] });
  await using host = await startRpc({}, { prepare });
  const { Peers } = await host.value<{ Peers: string[] }>("bootstrap/list");
  assert.equal(Peers.length, builtIn.Bootstrap.length);
  assert.equal((await host.call("bootstrap/rm/all")).status, 200);
});
