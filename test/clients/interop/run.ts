/**
 * `npm run test:interop -- [--size MIB] [--only NAME]`: our node and nodes of other
 * implementations, driven through their RPC in both directions. GO_IPFS names a go-ipfs 0.9.0,
 * HELIA a folder in which `npm i helia@7 @helia/unixfs @helia/ipns @libp2p/gossipsub` was run,
 * JS_IPFS a folder with ipfs-daemon@0.16.1, and KUBO a Kubo 0.43.0, which is tested over TCP and
 * over QUIC. Nodes that are not installed are left out. Exits with a non-zero code if a result is
 * wrong.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import {
  booksAgree,
  connects,
  fileCrosses,
  findsPeer,
  identifies,
  pings,
  providesFor,
  treeCrosses,
} from "#test/support/network/meeting.ts";
import { Report } from "#test/support/network/report.ts";
import { Rpc } from "#test/support/network/rpc.ts";
import { allowTunnels, tunnels } from "#test/support/network/tunnels.ts";
import { messagesCross, namesCross } from "#test/support/network/words.ts";
import { type Foreign, foreign, listenAddresses, type Speech, speeches } from "./foreign.ts";
import {
  announcesByRegion,
  countsResources,
  keepsConnected,
  meetAgain,
  meetsOver,
  OwnNode,
  recordsCross,
} from "./later.ts";

const { values: given } = parseArgs({
  options: { size: { type: "string", default: "64" }, only: { type: "string" } },
});
const size = Number(given.size) * 2 ** 20;
const report = new Report();

for (const { name, missing, start } of foreign) {
  if (given.only !== undefined && given.only !== name) continue;
  if (missing !== undefined) {
    report.note(`${name} is left out: ${missing}`);
    continue;
  }
  const folder = await mkdtemp(join(tmpdir(), "modhost-interop-"));
  try {
    await using other = await start();
    const { level, transport = "tcp" } = other;
    const settings = { transport, routing: level === undefined ? "dht" : "routing" } as const;
    await using ours = await OwnNode.start(folder, level, listenAddresses[transport]);
    report.note(`${name}: ${other.url}`);
    const own = await Rpc.of("modhost", ours.url, settings);
    const their = await Rpc.of(name, other.url, settings);
    await meet(own, their, other);
    if (other.speaks.has("later")) await meetAgain(report, ours, own, their);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
process.exitCode = report.end();

async function meet(own: Rpc, other: Rpc, { speaks, wire, level, transport }: Foreign): Promise<void> {
  const both = [
    [own, other],
    [other, own],
  ] as const;
  const part = (title: string, work: (from: Rpc, to: Rpc, seed: number) => Promise<void>) =>
    report.part(`${other.name}: ${title}`, async () => {
      for (const [at, [from, to]] of both.entries()) await work(from, to, 1000 * (at + 1));
    });
  const ifBoth = async (speech: Speech, work: (from: Rpc, to: Rpc, seed: number) => Promise<void>) => {
    if (speaks.has(speech)) await part(speeches[speech], work);
    else report.note(`${other.name}: ${speeches[speech]}: not supported`);
  };

  await part("connect", async (from, to) => {
    await connects(report, from, to);
    if (transport !== undefined) await meetsOver(report, from, to, transport);
    // The second time, the other node dials.
    if (from === own) await from.all("swarm/disconnect", { arg: to.address });
  });
  await part("identify", (from, to) => identifies(report, from, to));
  await part("ping", (from, to) => pings(report, from, to));
  await part("content", async (from, to, seed) => {
    await fileCrosses(report, from, to, 100, seed);
    await fileCrosses(report, from, to, size, seed + 1);
  });
  await ifBoth("books", (from, to) => booksAgree(report, from, to, size, 0.01));
  await part("trees", (from, to, seed) => treeCrosses(report, from, to, seed + 10));
  await ifBoth("dht", async (from, to, seed) => {
    await findsPeer(report, from, to);
    await providesFor(report, from, to, seed + 100);
  });
  await ifBoth("names", (from, to, seed) => namesCross(report, from, to, seed + 200));
  const wireOf = (node: Rpc) => (node === own && level === undefined ? "plain" : wire);
  // Kubo validates several messages at the same time, and drops one whose number is lower than that
  // of a message it has already validated.
  const oneByOne = level !== undefined;
  await ifBoth("pubsub", (from, to) => messagesCross(report, [from, wireOf(from)], [to, wireOf(to)], oneByOne));
  await ifBoth("streams", async (from, to) => {
    await Promise.all([from, to].map(allowTunnels));
    await tunnels(report, from, to);
  });
  await ifBoth("later", async (from, to, seed) => {
    await recordsCross(report, from, to, seed + 300);
    await announcesByRegion(report, from, to, seed + 400);
    await keepsConnected(report, from, to);
    await countsResources(report, from, to);
  });
}
