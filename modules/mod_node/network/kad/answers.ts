/** Bounds for what others answer to a table: one answer must not make work for minutes. */
import type { Stream } from "@libp2p/interface";
import { withOverrides } from "../swarm/overlaid.ts";

interface Answer {
  readonly closer: readonly Named[];
  readonly providers: readonly Named[];
}

interface Named {
  readonly multiaddrs: readonly Uint8Array[];
}

/** What libp2p's table reads answers with: it tells of each peer that one names, and dials them all. */
export interface Network {
  safeDispatchEvent(name: string, event: object): boolean;
  _writeReadMessage(stream: Stream, message: unknown, options: unknown): Promise<Answer>;
}

/** Peers next to a key, of which an honest answer names twenty; providers; addresses of each; bytes in all. */
const most = { closer: 20, providers: 256, addresses: 128, bytes: 2 ** 20 };

/** Of each answer the first peers are taken, and the rest is as if it had not been said; one that is too long is none. */
export function boundAnswers(network: Network): void {
  const read = network._writeReadMessage;
  network._writeReadMessage = async (stream, message, options) => {
    let left = most.closer + most.providers;
    const bounded = withOverrides(network, {
      safeDispatchEvent: (name: string, event: object) => left-- > 0 && network.safeDispatchEvent(name, event),
    });
    const { closer, providers, ...more } = await withinBytes(stream, () =>
      read.call(bounded, stream, message, options),
    );
    return { ...more, closer: few(closer, most.closer), providers: few(providers, most.providers) };
  };
}

const few = (peers: readonly Named[], count: number): Named[] =>
  peers.slice(0, count).map((peer) => ({ ...peer, multiaddrs: peer.multiaddrs.slice(0, most.addresses) }));

async function withinBytes<T>(stream: Stream, use: () => Promise<T>): Promise<T> {
  let bytes = 0;
  const count = ({ data }: { readonly data: { readonly byteLength: number } }) => {
    bytes += data.byteLength;
    if (bytes > most.bytes) stream.abort(new Error("the answer is too long"));
  };
  stream.addEventListener("message", count);
  try {
    return await use();
  } finally {
    stream.removeEventListener("message", count);
  }
}
