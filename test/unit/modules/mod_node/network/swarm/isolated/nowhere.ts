/**
 * A node as the reference makes one, with peers to begin with, discovery and all, on a machine without a network; then
 * what it has said by itself.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { openNode } from "#node/open.ts";

const folder = await mkdtemp(join(tmpdir(), "modhost-nowhere-"));
const told: string[] = [];
const notices: string[] = [];
process.on("warning", ({ message }) => told.push(`warning: ${message}`));
process.on("unhandledRejection", (reason) => told.push(`unhandled: ${reason}`));
const node = await openNode({
  repo: folder,
  profile: "default-networking",
  pubsub: true,
  namesOverPubsub: true,
  onNotice: (sentence) => notices.push(sentence),
});
node.log.listen(({ level, system, message }) => told.push(`${level} ${system}: ${message}`));
await node.goOnline();
const { libp2p } = await node.network();
const dialled = libp2p.getDialQueue().length;
// Until all of them have failed.
while (libp2p.getDialQueue().length > 0) await delay(10);
const connected = libp2p.getPeers().length;
await node.close();
await rm(folder, { recursive: true });
console.log(JSON.stringify({ told, notices, dialled, connected }));
