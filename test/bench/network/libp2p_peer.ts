/** One bare stream of libp2p, configured and patched as in the node: the layer below bitswap. */
import type { Stream } from "@libp2p/interface";
import { parsePeerAddress } from "#node/index.ts";
import { parseMultiaddr } from "#node/network/swarm/multiaddr.ts";
import { PatchNotices } from "#node/network/swarm/patches/notices.ts";
import { widenWindow } from "#node/network/swarm/patches/yamux/receive_window.ts";
import { drained } from "#node/network/swarm/stream_backpressure.ts";
import { openSwarm } from "#node/network/swarm/swarm.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import { openRepo } from "#node/storage/repo/repo.ts";
import { NodeLog } from "#node/util/log.ts";
import { Arrival, PlainContents } from "./plain_content.ts";
import { serve } from "./serve.ts";

const PROTOCOL = "/bench/content/1.0.0";

const contents = new PlainContents();
const repo = await openRepo(process.env.BENCH_FOLDER ?? "", { profile: "local" });
const swarm = await openSwarm({ repo, metadata: memoryMetadata(), log: new NodeLog(), onNotice: console.error });
await swarm.start();
const { libp2p } = swarm;

/** The name of a content is requested, and the content is the response. */
await libp2p.handle(PROTOCOL, (stream: Stream) => {
  stream.addEventListener("message", async ({ data }) => {
    for (const piece of contents.get(Buffer.from(data.subarray()).toString()) ?? [])
      if (!stream.send(piece)) await drained(stream);
  });
});

let to: ReturnType<typeof parsePeerAddress>["id"];

serve(`${swarm.listenAddresses()[0]}/p2p/${swarm.id}`, {
  async add({ size, chunk, seed }) {
    return contents.add(size, chunk, seed);
  },
  async connect({ address, times }) {
    to = parsePeerAddress(address).id;
    const took: number[] = [];
    for (let left = times; left > 0; left -= 1) {
      await libp2p.hangUp(to);
      const began = performance.now();
      await libp2p.dial(parseMultiaddr(address));
      took.push(performance.now() - began);
    }
    return took;
  },
  async ping({ times }) {
    const echo = await swarm.ping.open(to);
    const took: number[] = [];
    for (let left = times; left > 0; left -= 1) took.push(await echo.ping());
    echo.close();
    return took;
  },
  async read({ name, size }) {
    const stream = await libp2p.dialProtocol(to, PROTOCOL);
    widenWindow(stream, new PatchNotices());
    const arrival = new Arrival(name, size);
    stream.addEventListener("message", ({ data }) => {
      for (const part of data instanceof Uint8Array ? [data] : data) arrival.take(part);
    });
    stream.send(Buffer.from(name));
    await arrival.all;
    await stream.close();
    return null;
  },
});
