/**
 * A Helia node whose transfers are measured. It runs in a folder that has helia and @helia/unixfs,
 * after the source of `start_helia.mjs`.
 */
import { unixfs } from "@helia/unixfs";
import { identify } from "@libp2p/identify";
import { peerIdFromString } from "@libp2p/peer-id";
import { ping } from "@libp2p/ping";
import { multiaddr } from "@multiformats/multiaddr";
import { fixedSize } from "ipfs-unixfs-importer/chunker";
import { CID } from "multiformats/cid";

const { keystream } = await import(process.env.BENCH_CONTENT);
const node = await startHelia({
  services: { identify: identify(), ping: ping({ maxInboundStreams: 8, maxOutboundStreams: 8 }) },
  connectionManager: { inboundConnectionThreshold: 1000 },
});
const { libp2p } = node;
const files = unixfs(node);
const peerOf = (address) => peerIdFromString(address.split("/").at(-1));

async function* body(size, seed) {
  yield* keystream(size, seed);
}

const work = {
  add: async ({ size, chunk, seed }) =>
    String(await files.addByteStream(body(size, seed), { chunker: fixedSize({ chunkSize: chunk }), rawLeaves: true })),
  async connect({ address, times }) {
    const took = [];
    for (let left = times; left > 0; left -= 1) {
      await libp2p.hangUp(peerOf(address));
      const began = performance.now();
      await libp2p.dial(multiaddr(address));
      took.push(performance.now() - began);
    }
    return took;
  },
  async ping({ address, times }) {
    const took = [];
    for (let left = times; left > 0; left -= 1) {
      const began = performance.now();
      await libp2p.services.ping.ping(peerOf(address));
      took.push(performance.now() - began);
    }
    return took;
  },
  async read({ name, size }) {
    let left = size;
    for await (const { length } of files.cat(CID.parse(name), { signal: AbortSignal.timeout(300_000) })) left -= length;
    if (left !== 0) throw new Error(`${left} bytes of ${size} are missing`);
    return null;
  },
};

process.on("message", ({ request, parts }) => {
  work[request](parts).then(
    (value) => process.send({ value }),
    (error) => process.send({ error: String(error) }),
  );
});
process.on("disconnect", () => process.exit());
process.send({ value: libp2p.getMultiaddrs()[0].toString() });
