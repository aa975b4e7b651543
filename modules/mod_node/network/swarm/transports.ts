/** What connections are made of: transports, security and multiplexers (`Swarm.Transports`). */
import { circuitRelayTransport } from "@libp2p/circuit-relay-v2";
import type { ConnectionEncrypter, StreamMuxerFactory, Transport } from "@libp2p/interface";
import { noise } from "@libp2p/noise";
import { type TCPSocketOptions, tcp } from "@libp2p/tcp";
import { tls } from "@libp2p/tls";
import { webSockets } from "@libp2p/websockets";
import { yamux } from "@libp2p/yamux";
import type { ConfigFile } from "../../storage/repo/config.ts";
import { NodeError } from "../../util/errors.ts";
import { noiseCipher } from "./noise_cipher.ts";
import { mplexFactory } from "./patches/mplex/mplex_factory.ts";
import { replaceFrameDecoder } from "./patches/noise/frame_decoder.ts";
import type { PatchNotices } from "./patches/notices.ts";
import { coalesceWrites } from "./patches/tcp/coalesce_writes.ts";

type Config = Pick<ConfigFile, "value">;

export type TransportComponents = Parameters<ReturnType<typeof circuitRelayTransport>>[0] &
  Parameters<ReturnType<typeof webSockets>>[0];
type MakeTransport = (components: TransportComponents) => Transport;

/**
 * Bytes that a socket takes before whoever sends is to wait. With Node's own bound each frame is waited for, which makes
 * the speed of a connection one of how soon processes take their turns.
 */
const sockets: TCPSocketOptions & { readonly highWaterMark: number } = { highWaterMark: 512 * 1024 };

export function transportsOf(config: Config, relayed: boolean, quic: MakeTransport | undefined): MakeTransport[] {
  const transports: MakeTransport[] = [];
  if (config.value("Swarm.Transports.Network.TCP") !== false)
    transports.push(tcp({ dialOpts: sockets, listenOpts: sockets }));
  if (config.value("Swarm.Transports.Network.Websocket") !== false) transports.push(webSockets());
  if (quic !== undefined) transports.push(quic);
  if (relayed) transports.push(circuitRelayTransport());
  return transports;
}

export interface Quic {
  readonly make?: MakeTransport;
  /** Why it is not spoken. */
  readonly missing?: string;
}

/**
 * There when the operator has installed the package: it is a native one.
 *
 * @throws NodeError of a private network that is to have it
 */
export async function quicTransport(config: Config, isPrivate: boolean): Promise<Quic> {
  const wanted = config.value("Swarm.Transports.Network.QUIC");
  if (wanted === true && isPrivate) {
    throw new NodeError(
      "The QUIC transport does not support private networks. Please disable Swarm.Transports.Network.QUIC.",
    );
  }
  if (isPrivate) return { missing: "a private network has no QUIC" };
  if (wanted === false) return { missing: "Swarm.Transports.Network.QUIC is false" };
  const name: string = "@chainsafe/libp2p-quic";
  try {
    const { quic } = await import(name);
    return { make: quic() };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return { missing: code === "ERR_MODULE_NOT_FOUND" ? `${name} is not installed` : `${name} fails: ${message}` };
  }
}

interface Choice<T> {
  readonly priority: number | false | null;
  /** Where the configuration says nothing. */
  readonly usual: number;
  readonly make: T;
}

/** Those that are on, the lowest priority first. */
function chosen<T>(choices: readonly Choice<T>[]): T[] {
  return choices
    .map(({ priority, usual, make }) => ({ priority: priority ?? usual, make }))
    .filter(({ priority }) => priority !== false)
    .sort((a, b) => Number(a.priority) - Number(b.priority))
    .map(({ make }) => make);
}

/** The encrypter, as connections name it. */
const NOISE = "/noise";

type MakeEncrypter = (components: Parameters<ReturnType<typeof noise>>[0]) => ConnectionEncrypter;

export function encryptersOf(config: Config, patches: PatchNotices): MakeEncrypter[] {
  return chosen<MakeEncrypter>([
    { priority: config.value("Swarm.Transports.Security.Noise"), usual: 100, make: noise({ crypto: noiseCipher }) },
    // Nodes of version 0.9 turn down certificates of the library's TLS: an extension that they do not know is critical.
    { priority: config.value("Swarm.Transports.Security.TLS"), usual: 300, make: tls() },
  ]).map((make) => (components) => patched(make(components), patches));
}

/** Has an encrypter work on connections that write in one go, and noise read without copying. */
function patched(encrypter: ConnectionEncrypter, patches: PatchNotices): ConnectionEncrypter {
  for (const side of ["secureInbound", "secureOutbound"] as const) {
    const secure = encrypter[side];
    encrypter[side] = async (connection, options) => {
      const secured = await secure.call(encrypter, coalesceWrites(connection, patches), options);
      if (encrypter.protocol === NOISE) replaceFrameDecoder(secured.connection, patches);
      return secured;
    };
  }
  return encrypter;
}

export function muxersOf(config: Config, patches: PatchNotices): (() => StreamMuxerFactory)[] {
  return chosen<() => StreamMuxerFactory>([
    { priority: config.value("Swarm.Transports.Multiplexers.Yamux"), usual: 100, make: yamux() },
    { priority: config.value("Swarm.Transports.Multiplexers.Mplex"), usual: 200, make: mplexFactory(patches) },
  ]);
}
