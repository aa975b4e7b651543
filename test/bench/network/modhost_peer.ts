/** The node with its default settings. Content is read as its commands do, without HTTP. */
import { addEntries, addSettings, openFile, parseCid, parsePeerAddress, readFile } from "#node/index.ts";
import { parseMultiaddr } from "#node/network/swarm/multiaddr.ts";
import { openNode } from "#node/node/open.ts";
import { keystream } from "#test/support/content.ts";
import { serve } from "./serve.ts";

const node = await openNode({ repo: process.env.BENCH_FOLDER ?? "", profile: "local", pubsub: true });
await node.goOnline();
const { swarm } = await node.network();

async function* one(size: number, seed: number) {
  const body = (async function* () {
    yield* keystream(size, seed);
  })();
  yield { path: "file", kind: "file" as const, body };
}

serve(`${swarm.listenAddresses()[0]}/p2p/${swarm.id}`, {
  async add({ size, chunk, seed }) {
    const settings = addSettings({ chunker: `size-${chunk}`, cidVersion: 1 });
    const events = await Array.fromAsync(addEntries(node, one(size, seed), settings, { pin: true }));
    await node.sync();
    return String(events.findLast(({ built }) => built !== undefined)?.built?.cid);
  },
  async connect({ address, times }) {
    const { id } = parsePeerAddress(address);
    const where = parseMultiaddr(address);
    const took: number[] = [];
    for (let left = times; left > 0; left -= 1) {
      await swarm.libp2p.hangUp(id);
      const began = performance.now();
      await swarm.libp2p.dial(where);
      took.push(performance.now() - began);
    }
    return took;
  },
  async ping({ address, times }) {
    const echo = await swarm.ping.open(parsePeerAddress(address).id);
    const took: number[] = [];
    for (let left = times; left > 0; left -= 1) took.push(await echo.ping());
    echo.close();
    return took;
  },
  async read({ name, size }) {
    const { buffers } = node.blocks;
    const read = node.reader({ signal: AbortSignal.timeout(300_000), buffers });
    let left = size;
    for await (const piece of readFile(await openFile(parseCid(name), read), read, { buffers })) {
      left -= piece.length;
      buffers.release(piece);
    }
    if (left !== 0) throw new Error(`${left} bytes of ${size} are missing`);
    return null;
  },
});
