import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually } from "#test/support/eventually.ts";
import { unzip } from "#test/support/unzip.ts";
import { type RpcHost, startOnline } from "./support.ts";

interface Identify extends Record<string, unknown> {
  readonly Protocols: readonly string[] | null;
}

let host: RpcHost;
let other: RpcHost;
let address: string;
let id: string;

before(async () => {
  [host, other] = await Promise.all([startOnline({}, { api_level: "0.43" }), startOnline()]);
  const { ID, Addresses } = await other.value<{ ID: string; Addresses: string[] }>("id");
  id = ID;
  address = Addresses[0] as string;
});
after(() => Promise.all([host, other].map((each) => each.stop())));

const peered = async () => (await host.value<{ Peers: { ID: string; Addrs: string[] }[] }>("swarm/peering/ls")).Peers;

test("added peers are dialled, listed with the facts that they report, and removed", async () => {
  assert.deepEqual(await peered(), []);
  assert.deepEqual((await host.call(`swarm/peering/add?arg=${address}&arg=${address}`)).lines, [
    { ID: id, Status: "success" },
  ]);
  assert.deepEqual(await peered(), [{ ID: id, Addrs: [address.replace(`/p2p/${id}`, "")] }]);
  let identified: Identify | undefined;
  await eventually("the added peer is connected and identified", async () => {
    const { Peers } = await host.value<{ Peers: { Identify: Identify }[] | null }>("swarm/peers?identify=true");
    identified = Peers?.[0]?.Identify;
    return identified !== undefined && identified.Protocols !== null;
  });
  const { Protocols, ...identify } = identified as Identify;
  const own = await other.value("id");
  assert.ok(Protocols?.includes("/ipfs/bitswap/1.2.0"));
  assert.deepEqual(identify, {
    ID: id,
    PublicKey: own.PublicKey,
    Addresses: [address],
    AgentVersion: own.AgentVersion,
  });
  const [plain] = (await host.value<{ Peers: unknown[] }>("swarm/peers")).Peers;
  const nothing = { ID: "", PublicKey: "", Addresses: null, AgentVersion: "", Protocols: null };
  assert.deepEqual(plain, { Addr: address.replace(`/p2p/${id}`, ""), Peer: id, Identify: nothing });
  assert.equal((await host.call(`swarm/peering/rm?arg=${id}&encoding=text`)).text, `remove ${id} success\n`);
  assert.deepEqual(await peered(), []);
  assert.deepEqual(await host.failure("swarm/peering/add?arg=/ip4/127.0.0.1/tcp/1"), [500, "invalid p2p multiaddr"]);
});

test("resources count the process and its connections", async () => {
  await host.call(`swarm/connect?arg=${address}`);
  const { System, Peers, Services } =
    await host.value<Record<"System" | "Peers" | "Services", Record<string, never>>>("swarm/resources");
  const system = System as Record<string, unknown>;
  assert.equal(system.ConnsUsage, 1);
  assert.deepEqual([system.Conns, system.Streams], [3600, "unlimited"]);
  assert.ok(Number(system.Memory) > Number(system.MemoryUsage) && Number(system.MemoryUsage) > 1e7);
  assert.ok(Number(system.FDUsage) > 5);
  assert.deepEqual(Object.keys(Peers), [id]);
  assert.ok("libp2p.identify" in Services);
  const { text } = await host.call("swarm/resources?encoding=text");
  assert.match(text, /^system +Conns +3600 +1 +0%$/m);
});

test("the reachability of a node on loopback is unknown", async () => {
  assert.deepEqual(await host.value("swarm/addrs/autonat"), { reachability: "Unknown" });
});

test("a profile has V8's samples and facts about the process, and names collectors that Node lacks", async () => {
  const files = unzip(await host.bytes("diag/profile?profile-time=20ms"));
  assert.deepEqual([...files.keys()].sort(), [
    "allocs.heapprofile",
    "cpu.cpuprofile",
    "heap.json",
    "left_out.json",
    "resources.json",
    "version.json",
  ]);
  const read = (name: string) => JSON.parse(String(files.get(name)));
  assert.ok(read("cpu.cpuprofile").nodes.length > 1);
  assert.equal(typeof read("allocs.heapprofile").head, "object");
  assert.equal(read("version.json").v8, process.versions.v8);
  assert.ok(read("heap.json").used_heap_size > 1e6);
  assert.ok(read("left_out.json")["not in Node.js"].includes("mutex"));
  const some = unzip(await host.bytes("diag/profile?profile-time=0&collectors=heap&collectors=cpu"));
  assert.deepEqual([...some.keys()], ["heap.json"]);
});

test("peers of the routing table that run a newer version of this program are counted", async () => {
  await host.call(`swarm/connect?arg=${address}`);
  const { RunningVersion, ...checked } = await host.value("version/check");
  assert.match(String(RunningVersion), /^\d+\.\d+\.\d+$/);
  assert.equal(checked.GreatestVersion, RunningVersion);
  assert.deepEqual([checked.UpdateAvailable, checked.WithGreaterVersion], [false, 0]);
  await using later = await startOnline({}, { node_agent: "modhost/99.0.0" });
  const { Addresses } = await later.value<{ Addresses: string[] }>("id");
  await host.call(`swarm/connect?arg=${Addresses[0]}`);
  await eventually("the later peer is in the routing table", async () => {
    const { GreatestVersion } = await host.value("version/check");
    return GreatestVersion === "99.0.0";
  });
  const found = await host.value("version/check?min-percent=30");
  assert.deepEqual([found.UpdateAvailable, found.WithGreaterVersion], [true, 1]);
  assert.equal((await host.value("version/check?min-percent=99")).UpdateAvailable, false);
});

test("a tunnel in the foreground ends when the client disconnects", async () => {
  await host.call("config?arg=Experimental.Libp2pStreamMounting&arg=true&bool=true");
  const listeners = async () => (await host.value<{ Listeners: unknown[] | null }>("p2p/ls")).Listeners?.length ?? 0;
  for (const [call, address] of [
    ["p2p/listen?arg=/x/a&arg=/ip4/127.0.0.1/tcp/9", /\/tcp\/9$/],
    [`p2p/forward?arg=/x/b&arg=/ip4/127.0.0.1/tcp/0&arg=/p2p/${id}`, /\/tcp\/[1-9]\d*$/],
  ] as const) {
    const leaving = new AbortController();
    const { signal } = leaving;
    const response = await fetch(`http://127.0.0.1:${host.http}/api/v0/${call}&foreground=true`, {
      method: "POST",
      signal,
    });
    const first = await (response.body as ReadableStream<Uint8Array>).getReader().read();
    const { Status, Address } = JSON.parse(Buffer.from(first.value ?? []).toString());
    assert.equal(Status, "active");
    assert.match(Address, address);
    assert.equal(await listeners(), 1);
    leaving.abort();
    await eventually("no listener is open", async () => (await listeners()) === 0);
  }
});

test("diag/sys has the version of the level, like version", async () => {
  assert.equal((await host.value("diag/sys")).ipfs_version, "0.43.0");
  assert.equal((await other.value("diag/sys")).ipfs_version, "0.9.0");
});
