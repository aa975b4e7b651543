/** Creates transports, encrypters and multiplexers according to `Swarm.Transports`. */
import { circuitRelayTransport } from "@libp2p/circuit-relay-v2";
import type { ConnectionEncrypter, StreamMuxerFactory, Transport } from "@libp2p/interface";
import { noise } from "@libp2p/noise";
import { type TCPSocketOptions, tcp } from "@libp2p/tcp";
import { webSockets } from "@libp2p/websockets";
import { yamux } from "@libp2p/yamux";
import type { ConfigFile } from "../../storage/repo/config.ts";
import { largeReads, markUsedAtOnce } from "./large_reads.ts";
import { lazyTls } from "./lazy_tls.ts";
import { noiseCipher } from "./noise_cipher.ts";
import { mplexFactory } from "./patches/mplex/mplex_factory.ts";
import { NOISE, replaceFrameDecoder } from "./patches/noise/frame_decoder.ts";
import type { PatchNotices } from "./patches/notices.ts";
import { readAsDialled } from "./patches/tcp/accepted_reads.ts";
import { coalesceWrites, socketOf } from "./patches/tcp/coalesce_writes.ts";
import type { QuicComponents } from "./quic.ts";

type Config = Pick<ConfigFile, "value">;

export type TransportComponents = Parameters<ReturnType<typeof circuitRelayTransport>>[0] &
  Parameters<ReturnType<typeof webSockets>>[0] &
  QuicComponents;
export type MakeTransport = (components: TransportComponents) => Transport;

/**
 * Number of bytes that a socket buffers before the sender has to wait. With Node's default, the
 * sender would wait for every frame, and the speed of a connection would depend on the latency of
 * the event loop.
 */
const SOCKET_OPTIONS: TCPSocketOptions & { readonly highWaterMark: number } = { highWaterMark: 512 * 1024 };

/** The library reads them again for each socket. */
const DIAL_OPTIONS = {
  ...SOCKET_OPTIONS,
  get onread() {
    return largeReads();
  },
};

/** Returns the transports by their names in the configuration. */
export function transportsOf(
  config: Config,
  relayEnabled: boolean,
  quic: MakeTransport | undefined,
): ReadonlyMap<string, MakeTransport> {
  const transports = new Map<string, MakeTransport>();
  if (config.value("Swarm.Transports.Network.TCP") !== false)
    transports.set("TCP", tcp({ dialOpts: DIAL_OPTIONS, listenOpts: SOCKET_OPTIONS }));
  if (config.value("Swarm.Transports.Network.Websocket") !== false) transports.set("Websocket", webSockets());
  if (quic !== undefined) transports.set("QUIC", quic);
  if (relayEnabled) transports.set("Relay", circuitRelayTransport());
  return transports;
}

interface Candidate<T> {
  readonly priority: number | false | null;
  /** Applies if the configuration sets no priority. */
  readonly defaultPriority: number;
  readonly make: T;
}

/** Returns the candidates that are not switched off, the lowest priority first. */
function inPriority<T>(candidates: readonly Candidate<T>[]): T[] {
  return candidates
    .map(({ priority, defaultPriority, make }) => ({ priority: priority ?? defaultPriority, make }))
    .filter(({ priority }) => priority !== false)
    .sort((a, b) => Number(a.priority) - Number(b.priority))
    .map(({ make }) => make);
}

type MakeEncrypter = (components: Parameters<ReturnType<typeof noise>>[0]) => ConnectionEncrypter;

export function encryptersOf(config: Config, patches: PatchNotices): MakeEncrypter[] {
  return inPriority<MakeEncrypter>([
    {
      priority: config.value("Swarm.Transports.Security.Noise"),
      defaultPriority: 100,
      make: noise({ crypto: noiseCipher }),
    },
    // go-ipfs 0.9 refuses the certificates of the library's TLS, because they have a critical
    // extension that it does not know.
    { priority: config.value("Swarm.Transports.Security.TLS"), defaultPriority: 300, make: lazyTls() },
  ]).map((make) => (components) => patched(make(components), patches));
}

/**
 * Makes an encrypter work on connections that read and write much data at a time, and makes noise
 * read without copying or retaining memory.
 */
function patched(encrypter: ConnectionEncrypter, patches: PatchNotices): ConnectionEncrypter {
  for (const side of ["secureInbound", "secureOutbound"] as const) {
    const secure = encrypter[side];
    encrypter[side] = async (connection, options) => {
      const socket = socketOf(connection);
      if (socket !== undefined) readAsDialled(socket, largeReads, patches);
      const secured = await secure.call(encrypter, coalesceWrites(connection, patches), options);
      if (encrypter.protocol !== NOISE) return secured;
      // From now on only noise writes, and always bytes that it has just encrypted.
      coalesceWrites(connection, patches, { transfer: true });
      if (replaceFrameDecoder(secured.connection, patches) && socket !== undefined) markUsedAtOnce(socket);
      return secured;
    };
  }
  return encrypter;
}

export function muxersOf(config: Config, patches: PatchNotices): (() => StreamMuxerFactory)[] {
  return inPriority<() => StreamMuxerFactory>([
    { priority: config.value("Swarm.Transports.Multiplexers.Yamux"), defaultPriority: 100, make: yamux() },
    {
      priority: config.value("Swarm.Transports.Multiplexers.Mplex"),
      defaultPriority: 200,
      make: mplexFactory(patches),
    },
  ]);
}
