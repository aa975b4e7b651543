/**
 * Runs a node with the defaults of go-ipfs, including bootstrap peers and discovery, on a machine
 * without a network, and prints its log lines and notices.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { openNode } from "#node/node/open.ts";

const folder = await mkdtemp(join(tmpdir(), "modhost-nowhere-"));
const reported: string[] = [];
const notices: string[] = [];
process.on("warning", ({ message }) => reported.push(`warning: ${message}`));
process.on("unhandledRejection", (reason) => reported.push(`unhandled: ${reason}`));
const node = await openNode({
  repo: folder,
  profile: "default-networking",
  pubsub: true,
  namesOverPubsub: true,
  onNotice: (sentence) => notices.push(sentence),
});
node.log.listen(({ level, system, message }) => reported.push(`${level} ${system}: ${message}`));
await node.goOnline();
const { libp2p } = await node.network();
const dialled = libp2p.getDialQueue().length;
// Waits until all dials have failed.
while (libp2p.getDialQueue().length > 0) await delay(10);
const connected = libp2p.getPeers().length;
await node.close();
await rm(folder, { recursive: true });
console.log(JSON.stringify({ reported, notices, dialled, connected }));
