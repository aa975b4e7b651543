import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Change } from "#core/types.ts";
import type {
  BitswapState,
  DagNode,
  Job,
  NamedValue,
  NodeConfig,
  NodeConfigSet,
  NodeFiguresNow,
  NodeHistory,
  NodeKey,
  NodeStatus,
  PeerList,
  Pin,
  PinPage,
  PinState,
  RemoteServiceState,
} from "#modules/mod_http_admin_node/types.ts";
import { eventually } from "#test/support/eventually.ts";
import { type NodeHost, sharedNode, startNode } from "./support.ts";

const shared = sharedNode();

describe("the node shows", () => {
  test("its identity, the size of its repo, and that it is offline", async () => {
    const { host } = shared;
    const status = await host.get<NodeStatus>("/node");
    assert.deepEqual([status.online, status.offline, status.addresses], [false, true, []]);
    assert.equal(status.id, String((await host.node.id()).id));
    assert.ok(status.repo.blocks > 0 && status.repo.size > 0 && (status.repo.limit ?? 0) > 0);
    const metrics = await host.get<NodeFiguresNow>("/node/figures");
    assert.deepEqual([metrics.online, metrics.peers, metrics.blocks], [false, 0, status.repo.blocks]);
    assert.deepEqual(await host.get<PeerList>("/node/peers"), { online: false, peers: [] });
    assert.equal((await host.get<BitswapState>("/node/bitswap")).online, false);
    assert.deepEqual((await host.get<NodeHistory>("/node/history")).series.rate_in, []);
    assert.match(
      await host.refusal("POST", "/node/peers/connect", { address: `/ip4/127.0.0.1/tcp/1/p2p/${status.id}` }),
      /^409/,
    );
  });

  test("its configuration key by key, without secrets, and which values wait for a restart", async () => {
    const { host } = shared;
    const { keys, waiting } = await host.get<NodeConfig>("/node/config");
    const keyOf = (name: string) => keys.find(({ key }) => key === name);
    assert.deepEqual(
      [keyOf("Datastore.StorageMax")?.value, keyOf("Datastore.StorageMax")?.applies],
      ['"10GB"', "live"],
    );
    assert.deepEqual([keyOf("Identity.PrivKey")?.is_secret, keyOf("Identity.PrivKey")?.value], [true, undefined]);
    assert.deepEqual(waiting, []);
    const set = (key: string, value: string) => host.post<NodeConfigSet>("/node/config", { key, value });
    const live = await set("Datastore.StorageMax", '"20GB"');
    assert.deepEqual(live, { key: "Datastore.StorageMax", value: '"20GB"', is_in_force: true });
    assert.match(
      await host.refusal("POST", "/node/config", { key: "Datastore.StorageMax", value: "20GB" }),
      /^400.*not JSON/,
    );
    assert.match(
      await host.refusal("POST", "/node/config", { key: "Identity.PrivKey", value: '"x"' }),
      /^400.*private key/,
    );
    const later = keys.find(({ applies, type, value }) => applies === "start" && type === "bool" && value === "false");
    assert.ok(later !== undefined);
    assert.equal((await set(later.key, "true")).is_in_force, false);
    assert.deepEqual((await host.get<NodeConfig>("/node/config")).waiting, [{ key: later.key }]);
    await set(later.key, "false");
  });
});

describe("pins", () => {
  const add = async (content: string) => String((await shared.host.node.add(content, { pin: false })).cid);

  test("are added as jobs, named, listed, searched and removed, and each change is recorded", async () => {
    const { host } = shared;
    const cid = await add("to be pinned");
    const started = await host.post<Job>("/node/pins", { path: cid, name: "First pin" });
    assert.deepEqual([started.kind, started.what], ["pin", `pin ${cid}`]);
    const job = await host.over(started);
    assert.deepEqual([job.state, job.progress.done, job.result], ["done", 1, { cid }]);
    const page = await host.get<PinPage>("/node/pins", { search: "first P" });
    assert.deepEqual([page.total, page.pins], [1, [{ cid, type: "recursive", name: "First pin" }]]);
    assert.deepEqual(await host.get<PinState>(`/node/pins/${cid}`), { cid, type: "recursive", name: "First pin" });
    const renamed = await host.post<Pin>(`/node/pins/${cid}/rename`, { name: "Second" });
    assert.equal(renamed.name, "Second");
    assert.equal((await host.get<PinState>(`/node/pins/${cid}`)).name, "Second");
    const [listed] = await Array.fromAsync(host.node.pin.ls({ name: "Second" }));
    assert.equal(String(listed?.cid), cid, "the pin of the node has the name");
    assert.match(await host.refusal("POST", `/node/pins/${cid}/rename`, { name: "ü".repeat(128) }), /^400 /);
    await host.post(`/node/pins/${cid}/remove`);
    assert.deepEqual(await host.get<PinState>(`/node/pins/${cid}`), { cid, type: "none", name: "" });
    assert.match(await host.refusal("POST", `/node/pins/${cid}/remove`), /^404 not_found/);
    const whats = (await host.get<Change[]>("/changes")).map(({ what, result }) => `${what}: ${result}`);
    for (const what of [`pin ${cid}: done`, `name the pin ${cid} "Second": done`, `remove the pin ${cid}: failed`])
      assert.ok(whats.includes(what), what);
  });

  test("that exist through another pin are reported as such, and the list has pages", async () => {
    const { host } = shared;
    const [root] = await Array.fromAsync(
      host.node.addAll([{ path: "a", content: "below" }], { wrapWithDirectory: true, pin: true }),
    ).then((all) => all.toReversed());
    const below = await add("below");
    const above = String(root?.cid);
    assert.deepEqual(await host.get<PinState>(`/node/pins/${below}`), {
      cid: below,
      type: "indirect",
      through: above,
      name: "",
    });
    const all = await host.get<PinPage>("/node/pins");
    const page = await host.get<PinPage>("/node/pins", { offset: 1, limit: 1 });
    assert.deepEqual([page.total, page.pins], [all.total, all.pins.slice(1, 2)]);
    const [direct] = (await host.get<PinPage>("/node/pins", { type: "direct" })).pins;
    assert.equal(direct, undefined);
  });
});

describe("jobs", () => {
  test("collect garbage and verify blocks", async () => {
    const { host } = shared;
    const { cid } = await host.node.add("garbage", { pin: false });
    const collected = await host.over(await host.post<Job>("/node/repo/gc"));
    assert.equal(collected.state, "done");
    assert.ok(Number(collected.result?.removed) >= 1);
    assert.equal(await host.node.lowLevel.blocks.has(cid), false);
    const verified = await host.over(await host.post<Job>("/node/repo/verify"));
    assert.deepEqual([verified.state, verified.result?.checked], ["done", verified.progress.total]);
    assert.match(await host.refusal("POST", `/node/jobs/${verified.id}/cancel`), /^409/);
    assert.match(await host.refusal("POST", "/node/jobs/none/cancel"), /^404/);
  });
});

describe("keys", () => {
  test("are created, renamed, exported, imported, removed, and used to publish", async () => {
    const { host } = shared;
    const made = await host.post<NodeKey>("/node/keys", { name: "site" });
    const renamed = await host.post<NodeKey>("/node/keys/site/rename", { to: "page" });
    assert.deepEqual(renamed, { ...made, name: "page" });
    const exported = await host.ask("/node/keys/page/export", { method: "POST" });
    assert.match(exported.headers.get("content-disposition") ?? "", /^attachment; filename="page\.key"/);
    const bytes = await exported.bytes();
    await host.post("/node/keys/page/remove");
    const imported = await host.ask("/node/keys/again/import", { method: "POST", body: bytes });
    assert.deepEqual(await imported.json(), { name: "again", id: made.id, is_self: false });
    const { cid } = await host.node.add("published");
    const value = `/ipfs/${cid}`;
    const published = await host.post<NamedValue>("/node/names/publish", {
      path: String(cid),
      key: "again",
      allow_offline: true,
    });
    assert.deepEqual(published, { name: made.id, value });
    const keys = await host.get<NodeKey[]>("/node/keys");
    assert.deepEqual(
      keys.map(({ name, is_self, value: of }) => [name, is_self, of]),
      [
        ["self", true, "/ipfs/QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn"],
        ["again", false, value],
      ],
    );
    assert.equal((await host.get<NamedValue>("/node/names/resolve", { name: made.id })).value, value);
    const record = (await host.get<Change[]>("/changes")).find(({ what }) => what === "export the key page");
    assert.equal(record?.result, "done");
  });
});

test("remote pinning services are configured, and their keys are never shown", async () => {
  const { host } = shared;
  await host.post("/node/remote", { service: "far", endpoint: "http://127.0.0.1:9/api", key: "a-secret-key" });
  const services = await host.get<RemoteServiceState[]>("/node/remote");
  assert.deepEqual(services, [{ service: "far", endpoint: "http://127.0.0.1:9/api" }]);
  const counted = await host.get<RemoteServiceState[]>("/node/remote", { counts: true });
  assert.deepEqual(counted, [{ service: "far", endpoint: "http://127.0.0.1:9/api", is_valid: false }]);
  assert.doesNotMatch(JSON.stringify(await host.get("/changes")), /a-secret-key/);
  await host.post("/node/remote/far/remove");
  assert.deepEqual(await host.get("/node/remote"), []);
});

describe("any block is shown:", () => {
  test("a directory with its links in pages", async () => {
    const { host } = shared;
    const files = ["a", "b", "c"].map((name) => ({ path: name, content: name }));
    const all = await Array.fromAsync(host.node.addAll(files, { wrapWithDirectory: true }));
    const cid = String(all.at(-1)?.cid);
    const found = await host.get<DagNode>("/node/dag", { path: cid, offset: 1, limit: 1 });
    assert.deepEqual(
      [found.path, found.codec, found.version, found.hash.name, found.was_here, found.unixfs?.type],
      [`/ipfs/${cid}`, "dag-pb", 0, "sha2-256", true, "directory"],
    );
    assert.deepEqual([found.links.total, found.links.items], [3, [{ name: "b", cid: String(all[1]?.cid), size: 9 }]]);
    const below = await host.get<DagNode>("/node/dag", { path: `ipfs://${cid}/b` });
    assert.equal(below.cid, String(all[1]?.cid));
  });

  test("values as JSON, bytes as text or hex, all of limited length", async () => {
    const { host } = shared;
    const value = await host.node.dag.put({ a: [1, "two"], long: "x".repeat(100_000) });
    const { codec, data } = await host.get<DagNode>("/node/dag", { path: String(value) });
    assert.deepEqual([codec, data.form, data.is_cut, data.text.length], ["dag-cbor", "json", true, 65_536]);
    const inside = await host.get<DagNode>("/node/dag", { path: `${value}/a/1` });
    assert.equal(inside.remainder, "a/1");
    const raw = await host.node.block.put(Uint8Array.of(0, 255, 1), { format: "raw" });
    const bytes = await host.get<DagNode>("/node/dag", { path: String(raw) });
    assert.deepEqual([bytes.codec, bytes.data.form, bytes.data.text, bytes.size], ["raw", "hex", "00ff01", 3]);
  });

  test("a search for a missing block ends in time, and an invalid path fails at once", async () => {
    const { host } = shared;
    const missing = "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy";
    assert.match(await host.refusal("GET", "/node/dag", { path: missing }), /^404 not_found/);
    assert.match(await host.refusal("GET", "/node/dag", { path: "nonsense" }), /^400 invalid/);
    assert.match(await host.refusal("GET", "/node/dag", { path: missing, timeout: 10_000 }), /^400 invalid: .*timeout/);
  });
});

describe("two nodes on loopback", () => {
  let one: NodeHost;
  let other: NodeHost;
  before(async () => {
    const config = { node_offline: false };
    [one, other] = await Promise.all([startNode({ config }), startNode({ config })]);
    await Promise.all([one.node.goOnline(), other.node.goOnline()]);
  });
  after(async () => {
    await Promise.all([one?.stop(), other?.stop()]);
  });

  test("connect, show each other, fetch a pinned block, and disconnect", async () => {
    const { addresses, id } = await other.get<NodeStatus>("/node");
    const address = addresses.find((each) => each.includes("127.0.0.1/tcp") && !each.includes("/ws")) ?? "";
    const { message } = await one.post<{ message: string }>("/node/peers/connect", { address });
    assert.equal(message, `connect ${id} success`);
    const { peers } = await one.get<PeerList>("/node/peers");
    const peer = peers.find((each) => each.id === id);
    assert.deepEqual([peer?.transport, peer?.direction], ["tcp", "outbound"]);
    assert.ok(Date.parse(peer?.opened ?? "") <= Date.now());
    const { cid } = await other.node.add("z".repeat(300_000));
    const job = await one.over(await one.post<Job>("/node/pins", { path: String(cid) }));
    assert.deepEqual([job.state, job.progress.done], ["done", 3]);
    const bitswap = await one.get<BitswapState>("/node/bitswap");
    assert.ok(bitswap.ledgers.some(({ peer: from, exchanged }) => from === id && exchanged >= 3));
    await one.post("/node/peers/disconnect", { address: `/p2p/${id}` });
    // Either node may dial the other again at once, to announce the blocks or to test reachability.
    // That is another connection.
    const isListed = async () =>
      (await one.get<PeerList>("/node/peers")).peers.some((each) => each.id === id && each.opened === peer?.opened);
    await eventually("the connection is not listed any more", async () => !(await isListed()), { every: 50 });
  });

  test("cancel the pinning of a block that nobody has", async () => {
    const missing = "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy";
    const job = await one.post<Job>("/node/pins", { path: missing });
    const cancelled = await one.post<Job>(`/node/jobs/${job.id}/cancel`);
    assert.equal(cancelled.state, "cancelled");
    assert.match(await one.refusal("GET", "/node/dag", { path: missing, timeout: 0.1 }), /^504 timeout/);
  });
});
