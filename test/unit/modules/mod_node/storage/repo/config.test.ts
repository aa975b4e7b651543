import assert from "node:assert/strict";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ConfigFile } from "#node/storage/repo/config.ts";
import { createIdentity } from "#node/storage/repo/identity.ts";
import { amend, documentIn, newConfig, secretKey } from "./support.ts";

const message = (text: string) => ({ message: text });

test("a value is in the file when the call returns, with the order of keys preserved, readable by the owner only", async (t) => {
  const { config, folder } = await newConfig(t);
  assert.deepEqual(Object.keys(await documentIn(folder)).slice(0, 3), ["Identity", "Datastore", "Addresses"]);
  assert.equal(await config.set("Discovery.MDNS.Interval", () => 20), 20);
  const document = await documentIn(folder);
  assert.deepEqual(document.Discovery, { MDNS: { Enabled: true, Interval: 20 } });
  assert.deepEqual(Object.keys(document).slice(0, 3), ["Identity", "Datastore", "Addresses"]);
  assert.equal((await stat(join(folder, "config"))).mode & 0o777, 0o600);
  assert.equal(config.value("Discovery.MDNS.Interval"), 20);
  assert.deepEqual(await readdir(folder), ["config"]);
});

test("reading uses the current file, and reports what is wrong with a path", async (t) => {
  const { config, folder } = await newConfig(t);
  await amend(folder, { Extra: { b: 1, a: null } });
  assert.equal(JSON.stringify(await config.get("Extra")), '{"a":null,"b":1}');
  await assert.rejects(
    config.get("Swarm.Nothing"),
    message('failed to get config value: "Swarm key has no attributes"'),
  );
  await assert.rejects(config.get("swarm"), message('failed to get config value: " key has no attributes"'));
  await assert.rejects(config.get(""), message('failed to get config value: " key has no attributes"'));
  await assert.rejects(
    config.get("Gateway.RootRedirect.x"),
    message('failed to get config value: "Gateway.RootRedirect key is not a map"'),
  );
});

test("an invalid value changes nothing", async (t) => {
  const { config, folder } = await newConfig(t);
  const before = await readFile(join(folder, "config"), "utf8");
  await assert.rejects(
    config.set("Discovery.MDNS.Enabled", () => "yes"),
    message(
      "failed to set config value: failure to decode config: json: cannot unmarshal string into Go struct field MDNS.Discovery.MDNS.Enabled of type bool (maybe use --json?)",
    ),
  );
  await assert.rejects(
    config.set("Bootstrap.x", () => 1),
    message("failed to set config value: Bootstrap key is not a map (maybe use --json?)"),
  );
  assert.equal(await readFile(join(folder, "config"), "utf8"), before);
});

test("unknown keys can be created at the top level and nowhere else", async (t) => {
  const { config, folder } = await newConfig(t);
  assert.deepEqual(await config.set("Mine.a.b", () => [1]), [1]);
  await assert.rejects(
    config.set("Swarm.Odd", () => 1),
    message('failed to get config value: "Swarm key has no attributes"'),
  );
  await config.applyProfile("test");
  assert.deepEqual((await documentIn(folder)).Mine, { a: { b: [1] } });
});

test("secrets are neither shown nor changed, in any spelling", async (t) => {
  const { config, folder } = await newConfig(t);
  const key = message("cannot show or change private key through API");
  for (const path of ["Identity", "identity", "Identity.PrivKey", "IDENTITY.privkey"]) {
    await assert.rejects(config.get(path), key);
    await assert.rejects(
      config.set(path, () => assert.fail("the value was requested")),
      key,
    );
  }
  const service = message("cannot show or change pinning services credentials");
  for (const path of [
    "Pinning",
    "pinning.remoteservices",
    "Pinning.RemoteServices.a",
    "Pinning.RemoteServices.a.API.Key.x",
  ]) {
    await assert.rejects(config.get(path), service);
  }
  assert.equal(await config.get("Identity.PeerID"), "the peer id");
  assert.equal(await config.set("Pinning.RemoteServices.a.API.Endpoint", () => "http://x"), "http://x");
  await config.update("Pinning.RemoteServices", (services) => ({
    ...services,
    a: {
      API: { Endpoint: "http://x", Key: "hush" },
      Policies: { MFS: { Enable: true, PinName: "", RepinInterval: "" } },
    },
  }));
  const { before, after } = await config.applyProfile("lowpower");
  for (const shown of [await config.show(), before, after]) {
    assert.doesNotMatch(JSON.stringify(shown), /hush|PrivKey/);
    assert.match(JSON.stringify(shown), /"a":\{"API":\{"Endpoint":"http:\/\/x"\}/);
  }
  assert.match(await readFile(join(folder, "config"), "utf8"), /hush/);
});

test("the private key stays, even when an unknown section looks like the identity", async (t) => {
  const { config, folder } = await newConfig(t);
  await amend(folder, { identity: { privkey: "another" } });
  await config.set("Gateway.RootRedirect", () => "/x");
  assert.deepEqual((await documentIn(folder)).Identity, { PeerID: "the peer id", PrivKey: secretKey });
});

test("a shown document can replace the current one, and omitted fields become zero", async (t) => {
  const { config, folder } = await newConfig(t);
  await config.update("Pinning.RemoteServices", () => ({
    a: {
      API: { Endpoint: "http://x", Key: "hush" },
      Policies: { MFS: { Enable: false, PinName: "", RepinInterval: "" } },
    },
  }));
  await config.set("Mine", () => 1);
  const before = await documentIn(folder);
  const shown = await config.show();
  await config.replace(JSON.stringify(shown));
  assert.deepEqual(await documentIn(folder), before);

  const { a } = (shown.Pinning as { RemoteServices: { a: object } }).RemoteServices;
  const { Datastore, Identity: shownIdentity } = shown;
  const startable = { Datastore, Identity: shownIdentity };
  await config.replace(
    JSON.stringify({ ...startable, Pinning: { RemoteServices: { a: { ...a, API: undefined } } }, Other: 1 }),
  );
  const { Routing, Identity, Pinning, Mine, Other } = await documentIn(folder);
  assert.deepEqual(Routing, { Type: "" });
  assert.deepEqual(Identity, { PeerID: "the peer id", PrivKey: secretKey });
  assert.match(JSON.stringify(Pinning), /"Endpoint":"http:\/\/x","Key":"hush"/);
  assert.deepEqual([Mine, Other], [1, 1]);
});

test("an invalid replacement, or one with its own secrets, is refused", async (t) => {
  const { config } = await newConfig(t);
  const refused: readonly (readonly [string, string])[] = [
    ["not json", "failed to decode file as config"],
    ['{"Swarm":3}', "failed to decode file as config"],
    ['{"Identity":{"privkey":"x"}}', "setting private key with API is not supported"],
    ['{"Pinning":{"RemoteServices":{"b":{}}}}', "cannot add or remove remote pinning services with 'config replace'"],
  ];
  for (const [text, reason] of refused) await assert.rejects(config.replace(text), message(reason));
  await config.set("Pinning.RemoteServices.a.API.Endpoint", () => "http://x");
  for (const api of [{ Key: "k" }, { Endpoint: "http://y" }]) {
    await assert.rejects(
      config.replace(JSON.stringify({ Pinning: { RemoteServices: { a: { API: api } } } })),
      message("cannot change remote pinning services api info with `config replace`"),
    );
  }
  await assert.rejects(
    config.replace("{}"),
    message("cannot add or remove remote pinning services with 'config replace'"),
  );
});

test("a profile can be tried, or applied after a backup of the file", async (t) => {
  const { config, folder } = await newConfig(t);
  const text = await readFile(join(folder, "config"), "utf8");
  const tried = await config.applyProfile("server", { dryRun: true });
  assert.equal(await readFile(join(folder, "config"), "utf8"), text);
  const applied = await config.applyProfile("server");
  assert.deepEqual(applied, tried);
  assert.equal(((await config.get("Swarm.AddrFilters")) as unknown[]).length, 16);
  await config.applyProfile("server");
  assert.equal(((await config.get("Swarm.AddrFilters")) as unknown[]).length, 16);
  const copies = (await readdir(folder)).filter((name) => /^config-pre-server-\w+$/.test(name));
  assert.equal(copies.length, 2);
  const contents = await Promise.all(copies.map((name) => readFile(join(folder, name), "utf8")));
  assert.ok(contents.includes(text));
  await config.applyProfile("local-discovery");
  assert.deepEqual(await config.get("Swarm.AddrFilters"), []);
  await config.set("Addresses.Swarm", () => ["/ip4/0.0.0.0/tcp/4001", "/ip4/0.0.0.0/udp/4001/quic"]);
  await config.applyProfile("quic-v1");
  assert.deepEqual(await config.get("Addresses.Swarm"), ["/ip4/0.0.0.0/tcp/4001", "/ip4/0.0.0.0/udp/4001/quic-v1"]);
  await assert.rejects(config.applyProfile("odd"), message("odd is not a profile"));
  await assert.rejects(config.applyProfile("toString"), message("toString is not a profile"));
  await config.applyProfile("randomports");
  assert.match(String(await config.get("Addresses.Swarm")), /^\/ip4\/0\.0\.0\.0\/tcp\/(\d+),\/ip6\/::\/tcp\/\1$/);
});

test("concurrent changes all happen", async (t) => {
  const { config, folder } = await newConfig(t);
  await Promise.all(Array.from({ length: 50 }, (_, at) => config.set(`Mine.k${at}`, () => at)));
  assert.equal(Object.keys((await documentIn(folder)).Mine as object).length, 50);
});

test("an edit of the file is adopted when it is valid and nobody else changed the file meanwhile", async (t) => {
  const { config, folder } = await newConfig(t);
  const edited = async (file: string) => {
    const identity = await createIdentity();
    const document = JSON.parse(await readFile(file, "utf8"));
    await writeFile(file, JSON.stringify({ ...document, Identity: identity, Mounts: { IPFS: "/here" } }));
  };
  await config.edit(edited);
  assert.deepEqual(await config.get("Mounts"), { IPFS: "/here" });
  const before = await documentIn(folder);
  await assert.rejects(
    config.edit((file) => writeFile(file, "{bad")),
    message("failure to decode config: invalid character 'b' looking for beginning of object key string"),
  );
  await assert.rejects(
    config.edit((file) => writeFile(file, "{}")),
    message("identity was not set in config (was 'ipfs init' run?)"),
  );
  assert.deepEqual(await documentIn(folder), before);
  const raced = config.edit(async (file) => {
    await config.set("Mounts.IPNS", () => "/there");
    await edited(file);
  });
  await assert.rejects(raced, message("the config was changed while it was edited: edit it again"));
  assert.deepEqual(await readdir(folder), ["config"]);
});

test("a file that is not a configuration is not opened", async (t) => {
  const { folder } = await newConfig(t);
  const refused: readonly (readonly [string, string])[] = [
    ["", "failure to decode config: EOF"],
    ["{bad", "failure to decode config: invalid character 'b' looking for beginning of object key string"],
    ["[]", "failure to decode config: json: cannot unmarshal array into Go value of type config.Config"],
  ];
  for (const [text, reason] of refused) {
    await writeFile(join(folder, "config"), text);
    const remedy = `fix ${join(folder, "config")}, or restore a backup of it`;
    await assert.rejects(ConfigFile.open(folder), message(`${reason}: ${remedy}`));
  }
});
