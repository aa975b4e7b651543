/**
 * The configuration as Kubo 0.43 reads and writes it. The expected responses come from that
 * program.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type RpcHost, startRpc } from "./support.ts";

let host: RpcHost;
before(async () => {
  host = await startRpc({ api_level: "0.43" });
});
after(() => host.stop());

const set = (key: string, value: unknown) =>
  host.value(`config?arg=${key}&arg=${encodeURIComponent(JSON.stringify(value))}&json=true`);
const get = async (key: string, more = "") => (await host.value(`config?arg=${key}${more}`)).Value;

test("only known keys can be set, including those of Kubo that have no effect here", async () => {
  for (const [key, value] of [
    ["Provide.Enabled", false],
    ["Pubsub.Enabled", true],
    ["Swarm.ResourceMgr.Allowlist", ["/ip4/127.0.0.1"]],
    ["Internal.MFSNoFlushLimit", 3],
    ["Ipns.MaxCacheTTL", "1m0s"],
    ["Swarm.EnableHolePunching", false],
    ["Routing.AcceleratedDHTClient", true],
  ] as const) {
    assert.deepEqual(await set(key, value), { Key: key, Value: value });
    assert.deepEqual(await get(key), value);
  }
  await set("Pubsub.Enabled", null);
  for (const [key, missing] of [
    ["Mine", "Mine"],
    ["Mine.Too", "Mine"],
    ["Import.Mine", "Import.Mine"],
    ["Swarm.ConnMgr.Mine", "Swarm.ConnMgr.Mine"],
  ]) {
    const text = `failed to set config value: ${missing} not found (maybe use --json?)`;
    assert.deepEqual(await host.failure(`config?arg=${key}&arg=1&json=true`), [500, text]);
    assert.deepEqual(await host.failure(`config?arg=${key}`), [
      500,
      `failed to get config value: "${missing} not found"`,
    ]);
  }
  assert.equal(await get("Import.BatchMaxNodes"), null);
  assert.match(
    String((await host.failure("config?arg=Identity.PeerID&arg=x"))[1]),
    /^cannot set Identity\.PeerID to a value/,
  );
});

test("a document that replaces the configuration adds nothing that it omits, except the identity", async () => {
  const before = await host.value("config/show");
  await set("Gateway.RootRedirect", "/gone");
  const document = JSON.stringify({
    ...before,
    Identity: undefined,
    Gateway: { NoFetch: true },
    Import: { CidVersion: 1 },
  });
  assert.equal((await host.call("config/replace", { document })).status, 200);
  assert.equal(await get("Identity.PeerID"), (before.Identity as { PeerID: string }).PeerID);
  assert.equal(await get("Gateway.RootRedirect"), "");
  assert.equal(await get("Gateway.NoFetch"), true);
  assert.equal(await get("Import.CidVersion"), 1);
  await set("Import", null);
});

test("a duration keeps the form in which it was written", async () => {
  for (const [key, text] of [
    ["Ipns.MaxCacheTTL", "11h"],
    ["Provide.DHT.Interval", "90m"],
    ["AutoConf.RefreshInterval", "120s"],
  ] as const) {
    assert.equal((await host.value(`config?arg=${key}&arg=${text}`)).Value, text);
    assert.equal(await get(key), text);
  }
});

test("auto is shown as written or expanded, and its built-in values apply until it was looked up", async () => {
  // No server listens there.
  await set("AutoConf.URL", "http://127.0.0.1:9");
  await host.value("config/profile/apply?arg=autoconf-on");
  assert.deepEqual(await host.value("bootstrap/list"), { Peers: ["auto"] });
  const { Peers: peers } = await host.value("bootstrap/list?expand-auto=true");
  assert.ok((peers as string[]).length > 3);
  assert.deepEqual(await get("Bootstrap", "&expand-auto=true"), peers);
  assert.deepEqual(await get("Routing.DelegatedRouters", "&expand-auto=true"), []);
  assert.deepEqual(Object.keys((await get("DNS.Resolvers", "&expand-auto=true")) as object), ["crypto.", "eth."]);
  assert.deepEqual(await get("DNS.Resolvers"), { ".": "auto" });
  assert.deepEqual((await host.value("config/show?expand-auto=true")).Bootstrap, peers);
  assert.deepEqual(await host.failure("config?arg=Bootstrap&arg=x&expand-auto=true"), [
    500,
    "--expand-auto can only be used for reading config values, not for setting them",
  ]);
  await host.value("config/profile/apply?arg=autoconf-off");
  for (const call of ["bootstrap/add/default", "bootstrap/add?arg=auto", "bootstrap/add?arg=default"]) {
    assert.match(String((await host.failure(call))[1]), /^cannot add default bootstrap peers: AutoConf is disabled/);
  }
  assert.deepEqual(await host.failure("bootstrap/add?default=true"), [500, "no bootstrap peers to add"]);
  await set("AutoConf.Enabled", true);
  assert.deepEqual(await host.value("bootstrap/add?arg=default"), { Peers: ["auto"] });
  assert.match(String((await host.failure("bootstrap/rm?arg=auto"))[1]), /^cannot remove individual bootstrap peers/);
  assert.deepEqual(await host.value("bootstrap/rm/all"), { Peers: ["auto"] });
});

test("blocks, nodes and written files follow Import", async () => {
  await set("Import.HashFunction", "sha2-512");
  assert.match((await host.call("block/put", { a: "abcdef" })).text, /"Key":"bafkrgq/);
  assert.match((await host.call("dag/put", { a: "{}" })).text, /"\/":"bafyrgq/);
  await set("Import", null);
});

test("a profile switches announcing off and on", async () => {
  await host.value("config/profile/apply?arg=announce-off");
  assert.deepEqual([await get("Provide.Enabled"), await get("Provide.DHT.Interval")], [false, "0s"]);
  await host.value("config/profile/apply?arg=announce-on");
  assert.deepEqual([await get("Provide.Enabled"), await get("Provide.DHT.Interval")], [true, "22h0m0s"]);
});
