/**
 * The calls of the ecosystem's desktop front end (ipfs-webui 4.13), screen by screen, through its
 * client library, at both levels.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Libp2p } from "@libp2p/interface";
import { create, type KuboRPCClient } from "kubo-rpc-client";
import { eventually } from "#test/support/eventually.ts";
import { startStranger } from "#test/unit/modules/mod_node/network/swarm/support.ts";
import { type FakeService, pinStatus, startService } from "../commands/pinning_service.ts";
import { type RpcHost, startRpc } from "../commands/support.ts";

async function all<T>(source: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const each of source) found.push(each);
  return found;
}

async function first<T>(source: AsyncIterable<T>): Promise<T | undefined> {
  for await (const each of source) return each;
  return undefined;
}

const AGENT = "kubo/0.43.0";
/**
 * The front end shows the screens for log and provides only to these programs, by name and minimum
 * version.
 */
const OPENS = /^kubo\/0\.(?:3[79]|[4-9]\d)\./;

/** All commands that it calls, except `shutdown`, without arguments. Most of them refuse that. */
const calls = (
  "add cat commands config config/replace config/show dag/import files/cp files/ls files/mkdir files/mv files/read files/rm files/stat id " +
  "key/gen key/list key/rename key/rm log/level log/ls log/tail ls name/publish name/resolve pin/add pin/ls pin/remote/add pin/remote/ls " +
  "pin/remote/rm pin/remote/service/add pin/remote/service/ls pin/remote/service/rm pin/rm provide/stat repo/stat resolve routing/provide stats/bw " +
  "swarm/connect swarm/peers version"
).split(" ");

let host: RpcHost;
let stranger: Libp2p & AsyncDisposable;
let service: FakeService;
before(async () => {
  [host, stranger, service] = await Promise.all([
    startRpc({ node_offline: false, node_agent: AGENT, api_listeners: [{ mount: "/kubo/api/v0", level: "0.43" }] }),
    startStranger(),
    startService(),
  ]);
});
after(() => Promise.all([host?.stop(), stranger?.[Symbol.asyncDispose](), service?.[Symbol.asyncDispose]()]));

for (const [level, mount] of [
  ["0.9", ""],
  ["0.43", "/kubo"],
] as const) {
  describe(`the front end at the level ${level}`, () => {
    let node: KuboRPCClient;
    let base: string;
    const folder = `/of ${level}`;
    before(() => {
      base = `http://127.0.0.1:${host.http}${mount}/api/v0`;
      node = create({ url: base });
    });

    /** Makes a call that its client library does not support. */
    async function ask(path: string): Promise<unknown> {
      const response = await fetch(`${base}/${path}`, { method: "POST" });
      assert.equal(response.status, 200, `${path}: ${response.status}`);
      return response.json();
    }

    test("Status: shows the identity of the node, its storage and its traffic", async () => {
      const { id, agentVersion, addresses, publicKey, protocols } = await node.id();
      assert.match(agentVersion, OPENS);
      assert.ok(addresses.length > 0 && protocols.length > 0 && publicKey !== "", String(id));
      const { version } = await node.version();
      assert.equal(version, level === "0.9" ? "0.9.0" : "0.43.0");
      assert.ok(((await ask("commands")) as { Subcommands: unknown[] }).Subcommands.length > 20);
      const { repoSize, numObjects, storageMax } = await node.repo.stat();
      assert.deepEqual([typeof repoSize, typeof numObjects, typeof storageMax], ["bigint", "bigint", "bigint"]);
      const bandwidth = await first(node.stats.bw({ poll: true, interval: "100ms" } as object));
      assert.deepEqual(Object.keys(bandwidth ?? {}).sort(), ["rateIn", "rateOut", "totalIn", "totalOut"]);
    });

    test("Peers: connects, and lists the peers", async () => {
      await node.swarm.connect(stranger.getMultiaddrs()[0] as never);
      const [peer] = await node.swarm.peers({ verbose: true, identify: true } as object);
      assert.equal(String(peer?.peer), String(stranger.peerId));
      assert.ok(peer?.addr !== undefined && Array.isArray(peer.streams ?? []));
      const { Peers } = (await ask("swarm/peers?verbose=true&identify=true")) as { Peers: Record<string, unknown>[] };
      assert.equal(typeof (Peers[0] as { Identify: Record<string, unknown> }).Identify.AgentVersion, "string");
      assert.ok(await first(node.stats.bw({ peer: String(stranger.peerId) } as object)));
    });

    test("Files: creates a folder, adds into it, lists, moves, reads and removes", async () => {
      await node.files.mkdir(folder, { parents: true });
      const progress: number[] = [];
      const entries = [
        { path: "a.txt", content: Buffer.from("the text of a") },
        { path: "deep/b.txt", content: Buffer.alloc(600_000, "b") },
      ];
      const added = await all(
        node.addAll(entries, { pin: false, wrapWithDirectory: true, progress: (bytes) => void progress.push(bytes) }),
      );
      assert.equal(progress.at(-1), 600_000);
      const wrapper = added.find(({ path }) => path === "");
      assert.ok(wrapper !== undefined && added.some(({ path }) => path === "deep/b.txt"));
      await node.files.cp(`/ipfs/${wrapper.cid}`, `${folder}/added`);
      await node.files.mv(`${folder}/added/a.txt`, `${folder}/a.txt`);
      const { type, size, cumulativeSize, blocks, cid } = await node.files.stat(`${folder}/a.txt`);
      assert.deepEqual([type, size, typeof cumulativeSize, blocks], ["file", 13, "number", 0]);
      const listed = await all(node.files.ls(folder));
      assert.deepEqual(
        listed.map(({ name, type, size }) => [name, type, size]),
        [
          ["a.txt", "file", 13],
          ["added", "directory", 0],
        ],
      );
      assert.equal(
        Buffer.concat(await all(node.files.read(`${folder}/a.txt`, { offset: 4, length: 4 }))).toString(),
        "text",
      );
      assert.equal(Buffer.concat(await all(node.cat(cid, { offset: 4, length: 4 }))).toString(), "text");
      assert.deepEqual(
        (await all(node.ls(wrapper.cid))).map(({ name, type }) => [name, type]),
        [
          ["a.txt", "file"],
          ["deep", "dir"],
        ],
      );
      assert.equal(String(await node.resolve(`/ipfs/${wrapper.cid}/a.txt`, { recursive: true })), `/ipfs/${cid}`);
      const archive = Buffer.concat(await all(node.dag.export(wrapper.cid)));
      await node.files.rm(folder, { recursive: true });
      const imported = await all(node.dag.import([[archive]] as never, { pinRoots: true }));
      assert.deepEqual(
        imported.map(({ root }) => [String(root.cid), root.pinErrorMsg]),
        [[String(wrapper.cid), ""]],
      );
      await node.pin.rm(wrapper.cid);
    });

    test("Pins: adds, lists by type, looks one up, removes", async () => {
      const { cid } = await node.add("pinned", { pin: false });
      assert.equal(String(await node.pin.add(cid)), String(cid));
      for (const type of ["recursive", "direct"] as const) {
        const pins = await all(node.pin.ls({ type }));
        assert.equal(
          pins.some((pin) => String(pin.cid) === String(cid)),
          type === "recursive",
        );
      }
      assert.deepEqual(
        (await all(node.pin.ls({ paths: cid, type: "recursive" }))).map((pin) => [String(pin.cid), pin.type]),
        [[String(cid), "recursive"]],
      );
      await node.pin.rm(cid);
      await assert.rejects(all(node.pin.ls({ paths: cid, type: "recursive" })), /not pinned/);
    });

    test("Settings, pinning services: adds one, queries its state, pins there in the background, follows the files", async () => {
      const name = level === "0.9" ? "then" : "today";
      const { cid } = await node.add("pinned elsewhere", { pin: false });
      const pinned = pinStatus({ pin: { cid: String(cid), name: "far" } });
      service.respondWith(({ method }) => {
        if (method !== "GET") return { status: 202, body: pinned };
        return { body: { count: 1, results: [pinned] } };
      });
      const { remote } = node.pin;
      await remote.service.add(name, { endpoint: new URL(service.endpoint), key: "secret" });
      const services = await remote.service.ls({ stat: true });
      const [own] = services.filter((each) => each.service === name);
      assert.equal(String(own?.endpoint), service.endpoint);
      assert.equal((own?.stat as { status?: string } | undefined)?.status, "valid");
      await remote.add(cid, { service: name, background: true, name: "far" });
      const there = await all(
        remote.ls({ cid: [cid], service: name, status: ["queued", "pinning", "pinned", "failed"] }),
      );
      assert.deepEqual(
        there.map((pin) => String(pin.cid)),
        [String(cid)],
      );
      await remote.rm({ cid: [cid], service: name, status: ["queued", "pinning", "pinned", "failed"] });
      await node.config.set(`Pinning.RemoteServices.${name}.Policies.MFS.Enable`, false);
      await remote.service.rm(name);
      assert.equal(
        (await remote.service.ls()).some((each) => each.service === name),
        false,
      );
    });

    test("Settings: shows the configuration, changes a key, restores the whole", async () => {
      const config = (await node.config.getAll()) as { Addresses: { API: unknown }; Peering?: { Peers: unknown } };
      assert.ok(config.Addresses.API !== undefined);
      const peers = [{ ID: String(stranger.peerId), Addrs: [] }];
      await node.config.set("Peering.Peers", peers);
      assert.deepEqual(await node.config.get("Peering.Peers"), peers);
      await node.config.replace({ ...config, Peering: { Peers: [] } } as never);
      assert.deepEqual(await node.config.get("Peering.Peers"), []);
    });

    test("Settings, names: creates a key, renames it, publishes under it, resolves the name, removes the key", async () => {
      const { id } = await node.key.gen(`key ${level}`, { type: "ed25519" });
      const renamed = await node.key.rename(`key ${level}`, `new ${level}`);
      assert.deepEqual([renamed.was, renamed.now, renamed.id], [`key ${level}`, `new ${level}`, id]);
      assert.ok((await node.key.list()).some((key) => key.name === `new ${level}` && key.id === id));
      const { cid } = await node.add("named");
      const published = await node.name.publish(cid, { key: `new ${level}`, allowOffline: true });
      assert.deepEqual([published.name, published.value], [id, `/ipfs/${cid}`]);
      assert.equal(await first(node.name.resolve(id, { offline: true, nocache: false } as object)), `/ipfs/${cid}`);
      assert.equal((await node.key.rm(`new ${level}`)).name, `new ${level}`);
    });

    test("Diagnostics: reads the log levels, changes one, and follows the log", async () => {
      const subsystems: string[] = await node.log.ls();
      assert.ok(subsystems.length > 3);
      if (level === "0.43") {
        const { Levels } = (await ask("log/level?arg=*")) as { Levels: Record<string, string> };
        assert.deepEqual(
          subsystems.filter((name) => !(name in Levels)),
          [],
        );
      }
      await node.log.level(subsystems[0] as string, "debug");
      await node.log.level(subsystems[0] as string, "error");
      const leaving = new AbortController();
      const tail = node.log.tail({ signal: leaving.signal })[Symbol.asyncIterator]();
      const line = tail.next();
      await eventually("the log has a line", async () => {
        await node.version();
        return Promise.race([line, sleep(50, undefined)]);
      });
      leaving.abort();
      assert.equal(typeof (await line).value, "object");
    });

    test("Diagnostics, provides: shows what is announced, and when", async () => {
      const { Sweep, Legacy, FullRT } = (await ask("provide/stat?all=true")) as Record<string, unknown>;
      assert.deepEqual([typeof Sweep, typeof Legacy, typeof FullRT], ["object", "object", "boolean"]);
      assert.ok((Sweep ?? Legacy) !== null);
    });

    test("no call of its screens is unknown", async () => {
      for (const path of calls) {
        const leaving = new AbortController();
        const { status } = await fetch(`${base}/${path}`, { method: "POST", signal: leaving.signal });
        leaving.abort();
        assert.ok(status !== 404 && status !== 501, `${path}: ${status}`);
      }
    });
  });
}
