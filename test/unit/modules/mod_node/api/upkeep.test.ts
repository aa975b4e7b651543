/**
 * For files, pins, keys, the repo and the configuration, the node returns the same results as the
 * clients.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CID } from "multiformats/cid";
import { comparing } from "./compared.ts";

const compared = comparing();
const { same, sameFailure } = compared;

test("files of the namespace are written, read, listed and described as by the clients", async () => {
  await same((client) => client.files.mkdir("/a/b", { parents: true }));
  const options = { create: true, parents: true, truncate: true };
  for (const content of ["some text", new Uint8Array(300_000), new Blob(["a blob"])]) {
    await same((client) => client.files.write("/a/file", content, options));
    await same((client) => client.files.stat("/a/file"));
  }
  for (const more of [{ cidVersion: 1 }, { rawLeaves: true }, { hashAlg: "sha2-512" }, { offset: 3 }, { length: 4 }]) {
    await same((client) => client.files.write("/a/file", "some other text", { ...options, ...more }));
    await same((client) => client.files.stat("/a/file", { withLocal: true }));
  }
  await same((client) => client.files.write("/a/file", "0123456789", options));
  for (const range of [{}, { offset: 4 }, { length: 3 }, { offset: 2, length: 3 }]) {
    await same((client) => client.files.read("/a/file", range));
  }
  for (const path of ["/", "/a", "/a/", "/a/b", "/a/file", "/a/file/"]) await same((client) => client.files.ls(path));
  const { cid } = await compared.node.files.stat("/a");
  await same((client) => client.files.stat(`/ipfs/${cid}/file`));
  await same((client) => client.files.flush("/a"));
  let copies = 0;
  await same((client) => client.files.cp(cid, `/copy-${copies++}`));
  await same((client) => client.files.cp(`/ipfs/${cid}/file`, `/a/copy-${copies++}`));
  await same((client) => client.files.mv("/a/file", "/a/file"));
  await same((client) => client.files.rm("/a/b/none", { force: true }));
  await same((client) => client.files.ls("/"));
});

test("impossible changes of the namespace fail as with the clients", async () => {
  await sameFailure((client) => client.files.stat("/none"));
  await sameFailure((client) => client.files.stat("relative"));
  await sameFailure((client) => client.files.ls("/none"));
  await sameFailure((client) => client.files.read("/none"));
  await sameFailure((client) => client.files.read("/"));
  await sameFailure((client) => client.files.mkdir("/x/y"));
  await sameFailure((client) => client.files.mkdir("/"));
  await sameFailure((client) => client.files.rm("/"));
  await sameFailure((client) => client.files.rm("/none"));
  await sameFailure((client) => client.files.mv("/none", "/other"));
  await sameFailure((client) => client.files.cp("/none", "/other"));
  await sameFailure((client) => client.files.write("/none", "x"));
  await sameFailure((client) => client.files.write("/new", "x", { create: true, offset: -1 }));
  await sameFailure((client) => client.files.mkdir("/new", { cidVersion: 7 }));
});

test("pins are added, listed and removed as by the clients", async () => {
  const { node } = compared;
  const one = await node.block.put("one", { format: "raw" });
  const other = await node.block.put("other", { format: "raw" });
  await same((client) => client.pin.add(one));
  await same((client) => client.pin.addAll([one, other]));
  await same((client) => client.pin.addAll([{ cid: other }, { path: `/ipfs/${one}` }]));
  // The older client treats the rest of a list like its first item.
  await same((client) => client.pin.addAll([one, { cid: other }, { path: `/ipfs/${one}` }]), "kubo");
  await same((client) => client.pin.ls());
  for (const type of ["recursive", "direct", "indirect", "all"]) await same((client) => client.pin.ls({ type }));
  await same((client) => client.pin.ls({ paths: [one, String(other)] }));
  await same((client) => client.pin.ls({ paths: one, type: "recursive" }));
  await sameFailure((client) => client.pin.ls({ type: "none" }));
  await sameFailure((client) => client.pin.ls({ paths: one, type: "direct" }));
  await sameFailure((client) => client.pin.add("none"));
  await sameFailure((client) => client.pin.rm("QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nx"));
  await node.pin.rm(one);
  await sameFailure((client) => client.pin.rm(one));
});

test("pinning services are stored as by the clients", async () => {
  const { service } = compared.node.pin.remote;
  await service.add("one", { endpoint: "http://127.0.0.1:1/psa", key: "secret" });
  const plainServices = (services: { endpoint: URL }[]) =>
    services.map((each) => ({ ...each, endpoint: String(each.endpoint) }));
  await same(async (client) => plainServices(await client.pin.remote.service.ls()));
  await same(async (client) => plainServices(await client.pin.remote.service.ls({ stat: true })));
  const again = { endpoint: new URL("http://127.0.0.1:1/psa"), key: "secret" };
  await sameFailure((client) => client.pin.remote.service.add("one", again));
  await sameFailure((client) => client.pin.remote.ls({ service: "two" }));
  await sameFailure((client) => client.pin.remote.rm({ service: "two" }));
  await sameFailure((client) => client.pin.remote.rmAll({ service: "two" }));
  const cid = CID.parse("QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn");
  await sameFailure((client) => client.pin.remote.add(cid, { service: "two" }));
  await same((client) => client.pin.remote.service.rm("one"));
});

test("keys are listed, renamed and removed as by the clients", async () => {
  const { key } = compared.node;
  await key.gen("one");
  await same((client) => client.key.list());
  await same((client) => client.key.list({ ipnsBase: "b58mh" }));
  await same((client) => client.key.rename("one", "one"));
  let made = 0;
  const shape = (result: object) => Object.keys(result).sort();
  await same(async (client) => shape(await client.key.gen(`made-${made++}`)));
  await same(async (client) => shape(await client.key.gen(`made-${made++}`, { type: "rsa", size: 2048 })));
  made = 0;
  await same(async (client) => shape(await client.key.rm(`made-${made++}`)));
  await sameFailure((client) => client.key.gen("one"));
  await sameFailure((client) => client.key.gen("two", { type: "none" }));
  await sameFailure((client) => client.key.rm("none"));
  await sameFailure((client) => client.key.rename("none", "two"));
  await sameFailure((client) => client.key.rename("self", "two"));
  await sameFailure((client) => client.key.list({ ipnsBase: "none" }));
});

test("the repo and the configuration are described and changed as by the clients", async () => {
  await Array.fromAsync(compared.node.repo.gc());
  await same(async (client) => {
    await compared.node.block.put("loose");
    return client.repo.gc();
  });
  await same(async (client) => {
    const { repoSize, ...stat } = await client.repo.stat();
    return { ...stat, repoSize: typeof repoSize };
  });
  await same(async (client) => {
    const { repoSize, ...stat } = await client.stats.repo({ sizeOnly: true });
    return { ...stat, repoSize: typeof repoSize };
  });
  await same((client) => client.repo.version());
  await same((client) => client.config.getAll());
  await same((client) => client.config.get("Addresses"));
  const values = [
    ["Discovery.MDNS.Enabled", true],
    ["Discovery.MDNS", { Enabled: false, Interval: 3 }],
    ["Datastore.StorageMax", "5GB"],
    ["Bootstrap", []],
  ] as const;
  for (const [path, value] of values) {
    await same((client) => client.config.set(path, value));
    await same((client) => client.config.get(path));
  }
  await same(async (client) => client.config.replace(await client.config.getAll()));
  await same((client) => client.config.profiles.apply("test", { dryRun: true }));
  await sameFailure((client) => client.config.get("None.At.All"));
  await sameFailure((client) => client.config.get("Identity.PrivKey"));
  await sameFailure((client) => client.config.set("Discovery.MDNS.Interval", "text"));
  await sameFailure((client) => client.config.profiles.apply("none"));
});

test("the version and the log are reported as by the clients", async () => {
  await same(async (client) => {
    const { "ipfs-http-client": _, ...version } = await client.version();
    return version;
  });
  await same((client) => client.log.ls());
  await same((client) => client.log.level("all", "error"));
  await sameFailure((client) => client.log.level("none", "error"));
  await same(async (client) => Object.keys(await client.diag.sys()).sort());
  assert.equal((await compared.node.version()).version, "0.9.0");
});
