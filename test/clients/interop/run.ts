/**
 * `npm run test:interop -- [--size MIB] [--only NAME]`: our node and nodes that we did not write, driven through their
 * RPC in both directions. GO_IPFS names a go-ipfs 0.9.0, HELIA a folder in which
 * `npm i helia@7 @helia/unixfs @helia/ipns @libp2p/gossipsub` was run, JS_IPFS one with ipfs-daemon@0.16.1; who is not
 * there is left out. Exits non-zero when an answer is not as expected.
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
import { RpcServer } from "#test/support/rpc_server.ts";
import { type Foreign, foreign, type Speech, speeches } from "./foreign.ts";

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
    await using server = await RpcServer.start({ folder });
    await using other = await start();
    report.note(`${name}: ${other.url}`);
    await meet(await Rpc.of("modhost", server.url), await Rpc.of(name, other.url), other);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
process.exitCode = report.end();

async function meet(own: Rpc, other: Rpc, { speaks, wire }: Foreign): Promise<void> {
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
    else report.note(`${other.name}: ${speeches[speech]}: it has none`);
  };

  await part("connect", async (from, to) => {
    await connects(report, from, to);
    // The second time, the other one dials.
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
  const wireOf = (node: Rpc) => (node === own ? "plain" : wire);
  await ifBoth("pubsub", (from, to) => messagesCross(report, [from, wireOf(from)], [to, wireOf(to)]));
  await ifBoth("streams", async (from, to) => {
    await Promise.all([from, to].map(allowTunnels));
    await tunnels(report, from, to);
  });
}
