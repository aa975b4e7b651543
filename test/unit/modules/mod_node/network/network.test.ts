import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { LowLevelNode } from "#node/low_level_node.ts";
import { openNode } from "#node/open.ts";

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
  const index = fileURLToPath(new URL("../../../../../modules/mod_node/open.ts", import.meta.url));
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
