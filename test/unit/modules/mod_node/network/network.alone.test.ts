import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { LowLevelNode } from "#node/node/low_level_node.ts";
import { openNode } from "#node/node/open.ts";
import type { ConfigPath } from "#node/storage/repo/schema.ts";

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "modhost-network-"));
});
after(() => rm(folder, { recursive: true, force: true }));

const open = (name: string, options: { offline?: boolean; pubsub?: boolean } = {}): Promise<LowLevelNode> =>
  openNode({ repo: join(folder, name), profile: "local", ...options });

test("a node opens no connection until it goes online", async () => {
  const node = await open("quiet");
  assert.equal(node.online, false);
  await assert.rejects(node.network(), { code: "OFFLINE_COMMAND", kind: "failure" });
  await assert.rejects(node.network("client", "OFFLINE"), { code: "OFFLINE", kind: "client" });
  const going = node.goOnline();
  assert.equal(node.online, true);
  const { swarm } = await node.network();
  assert.equal(swarm.listenAddresses().length, 1);
  await going;
  await node.goOnline();
  assert.equal(await node.network(), await node.network());
  await node.close();
  assert.equal(node.blocks.source, undefined);
  await assert.rejects(node.goOnline(), { code: "STORE_CLOSED" });
});

test("an offline node stays offline", async () => {
  const node = await open("offline", { offline: true });
  await node.goOnline();
  assert.equal(node.online, false);
  await assert.rejects(node.network(), { code: "OFFLINE_COMMAND" });
  await node.close();
});

test("an invalid configuration is refused, and can be corrected without a restart", async () => {
  const node = await open("odd");
  await node.repo.config.set("Swarm.ConnMgr.Type", () => "odd");
  await assert.rejects(node.goOnline(), { message: 'unrecognized ConnMgr.Type: "odd"' });
  assert.equal(node.online, false);
  await node.repo.config.set("Swarm.ConnMgr.Type", () => "none");
  await node.goOnline();
  assert.equal(node.online, true);
  await node.close();
});

test("a contradictory configuration is refused with the error text of Kubo", async (t) => {
  const node = await open("contradicting");
  t.after(() => node.close());
  const { config, path } = node.repo;
  const off = false;
  const contradictions: readonly [settings: { readonly [P in ConfigPath]?: unknown }, reason: RegExp][] = [
    [{ "Bitswap.Libp2pEnabled": off, "HTTPRetrieval.Enabled": off }, /^invalid configuration: .* are both disabled, /],
    [
      { "Swarm.Transports.Network.Relay": off, "Swarm.EnableRelayHop": true },
      /^Failed to enable `Swarm.RelayService`, it requires `Swarm.Transports.Network.Relay` to be true.$/,
    ],
    [{ "Swarm.Transports.Network.Relay": off, "Swarm.EnableAutoRelay": true }, /^Failed to enable `Swarm.RelayClient`/],
    [{ Bootstrap: ["auto"], "AutoConf.Enabled": off }, /^no usable bootstrap peers: AutoConf is disabled /],
    [{ "DNS.Resolvers": { eth: "https://one.example" } }, /^invalid domain eth; must be FQDN$/],
    [{ "DNS.Resolvers": { "eth.": "odd" } }, /^bad resolver for eth.: invalid DoH resolver URL: odd$/],
    [
      { "Provide.DHT.Interval": "49h" },
      /^Provide.DHT.Interval \(49h0m0s\) must be less than or equal to DHT provider record validity \(48h0m0s\)$/,
    ],
    [
      { "Ipns.RecordLifetime": "1h" },
      /^config setting IPNS.RecordLifetime \(1h0m0s\) must be >= IPNS.RepublishPeriod /,
    ],
  ];
  for (const [settings, message] of contradictions) {
    const before = Object.keys(settings).map((key) => [key as ConfigPath, config.value(key as ConfigPath)] as const);
    for (const [key, value] of Object.entries(settings)) await config.set(key as ConfigPath, () => value as never);
    await assert.rejects(node.goOnline(), { message });
    for (const [key, value] of before) await config.set(key, () => value as never);
  }
  await config.set("Swarm.ConnMgr.HighWater", () => 96);
  for (const [limits, name] of [
    [{ Conns: 96 }, "Conns"],
    [{ Conns: 97, ConnsInbound: 90 }, "ConnsInbound"],
    [{ Streams: "blockAll" }, "Streams"],
    [{ StreamsInbound: 1 }, "StreamsInbound"],
  ] as const) {
    await writeFile(join(path, "libp2p-resource-limit-overrides.json"), JSON.stringify({ System: limits }));
    await assert.rejects(node.goOnline(), {
      message: new RegExp(`resource manager System.${name} \\(\\d+\\) must be bigger than ConnMgr.HighWater \\(96\\)$`),
    });
  }
  await writeFile(join(path, "libp2p-resource-limit-overrides.json"), '{"System":{"ConnsInbound":97}}');
  await node.goOnline();
});

test("a node that is closed while it goes online leaves nothing open", async () => {
  const node = await open("hasty");
  const going = node.goOnline();
  await node.close();
  await going;
  await (await open("hasty")).close();
});

test("a part of the network that fails to stop does not keep the others from stopping", async (t) => {
  const node = await open("failing", { pubsub: true });
  t.after(() => node.close());
  await node.goOnline();
  const { libp2p, pubsub, routing, close } = await node.network();
  assert.ok(pubsub);
  t.mock.method(pubsub, "stop", () => {
    throw new Error("cannot be stopped");
  });
  const stopped = t.mock.method(routing, "stop");
  await close();
  assert.equal(libp2p.status, "stopped");
  assert.equal(stopped.mock.callCount(), 1);
});

test("a process exits by itself, at once, when its nodes are closed", async () => {
  const program = join(folder, "two.ts");
  const index = fileURLToPath(new URL("../../../../../modules/mod_node/node/open.ts", import.meta.url));
  await writeFile(
    program,
    `import { openNode } from ${JSON.stringify(index)};
const [a, b] = await Promise.all(["a", "b"].map((name) => openNode({ repo: ${JSON.stringify(folder)} + "/" + name, profile: "local" })));
await Promise.all([a.goOnline(), b.goOnline()]);
const [one, two] = await Promise.all([a.network(), b.network()]);
await one.swarm.connect(two.swarm.id, two.swarm.listenAddresses());
await Promise.all([a.close(), b.close()]);
const open = process.getActiveResourcesInfo().filter((name) => /TCP|UDP|Timeout/.test(name));
console.log(JSON.stringify(open));
`,
  );
  const { stdout } = await promisify(execFile)(process.execPath, ["--conditions=source", program], {
    timeout: 120_000,
  });
  assert.equal(stdout.trim(), "[]");
});
