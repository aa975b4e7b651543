/** A Kubo daemon with its stores on the disk, over TCP alone, driven over its RPC. */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { keystream } from "#test/support/content.ts";
import { GoIpfs } from "#test/support/go_ipfs.ts";
import type { Peer, Requests } from "./peers.ts";

type Work = { readonly [K in keyof Requests]: (parts: Parameters<Requests[K]>[0]) => Promise<ReturnType<Requests[K]>> };

/** Maximum for `ping`, which waits a second after each one. */
const MAX_PINGS = 4;

export async function startKubo(): Promise<Peer> {
  const kubo = await GoIpfs.startKubo((config) => {
    config.Routing = { Type: "none" };
  });
  const work = workOf(kubo);
  return {
    pid: kubo.pid,
    address: kubo.address,
    ask: (name, parts) => work[name](parts as never) as never,
    stop: () => kubo[Symbol.asyncDispose](),
  };
}

const workOf = (kubo: GoIpfs): Work => ({
  async add({ size, chunk, seed }) {
    const body = new FormData();
    body.set("file", new Blob([...keystream(size, seed)] as Uint8Array<ArrayBuffer>[]));
    const added = await kubo.call<{ Hash: string }>(`add?chunker=size-${chunk}&cid-version=1&quieter=true`, body);
    return added.at(-1)?.Hash ?? "";
  },
  /**
   * Connects only once: a second time it would dial other addresses that the peer has announced,
   * and bypass the line.
   */
  async connect({ address }) {
    const began = performance.now();
    await kubo.call(`swarm/connect?arg=${address}`);
    return [performance.now() - began];
  },
  async ping({ address, times }) {
    const peer = address.split("/").at(-1);
    const pongs = await kubo.call<{ Success: boolean; Time: number }>(
      `ping?arg=${peer}&count=${Math.min(times, MAX_PINGS)}`,
    );
    return pongs.filter(({ Success, Time }) => Success && Time > 0).map(({ Time }) => Time / 1_000_000);
  },
  async read({ name, size }) {
    const sent = request(`${kubo.url}/api/v0/cat?arg=${name}`, { method: "POST" });
    sent.end();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    let left = size;
    for await (const { length } of response as AsyncIterable<Buffer>) left -= length;
    if (left !== 0) throw new Error(`${left} bytes of ${size} are missing`);
    return null;
  },
});
