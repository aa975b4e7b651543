/** A new node that reads a file once from the given sources, and reports how long it took. */
import { openFile, parseCid, parsePeerId, readFile } from "#node/index.ts";
import { parseMultiaddr } from "#node/network/swarm/multiaddr.ts";
import { openNode } from "#node/node/open.ts";
import type { Taken, ToTake } from "../sources.ts";

const { cid, id, peer, gateways } = JSON.parse(process.env.BENCH_TAKE ?? "") as ToTake;
const node = await openNode({ repo: process.env.BENCH_FOLDER ?? "", profile: "local" });
await node.repo.config.set("HTTPRetrieval.TLSInsecureSkipVerify", () => true);
await node.goOnline();
const { swarm, bitswap, httpSources } = await node.network();
const records = gateways.map((address) => {
  return { id: parsePeerId(id), addresses: [parseMultiaddr(address)], protocols: ["transport-ipfs-gateway-http"] };
});
bitswap.providers = {
  async *findProviderPeers() {
    yield* records;
  },
};
if (peer !== undefined) await swarm.connect(parsePeerId(id), [parseMultiaddr(peer)]);

const { buffers } = node.blocks;
const read = node.reader({ signal: AbortSignal.timeout(600_000), buffers });
const began = performance.now();
const cpu = process.cpuUsage();
let bytes = 0;
for await (const piece of readFile(await openFile(parseCid(cid), read), read, { buffers })) {
  bytes += piece.length;
  buffers.release(piece);
}
const { user, system } = process.cpuUsage(cpu);
const reported: Taken = {
  bytes,
  seconds: (performance.now() - began) / 1000,
  cpu: (user + system) / 1e6,
  overHttp: httpSources.counts.bytes,
  duplicates: bitswap.stat().dupDataReceived,
  sources: Array.from(httpSources.all, ({ name, ledger }) => [name, ledger.received] as const),
};
process.send?.(reported);
