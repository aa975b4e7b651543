/**
 * Replaces the library's streams of QUIC connections. The library's streams read without limit
 * however slow their reader is, treat a reset as an end, lose streams that arrive before a listener
 * is added, and read 4 KiB at a time.
 */
import type { CreateStreamOptions, MessageStream, StreamMuxer, Upgrader } from "@libp2p/interface";
import { AbstractStreamMuxer } from "@libp2p/utils";
import { raceSignal } from "../../../../util/async/abortable.ts";
import type { Patch, PatchNotices } from "../notices.ts";
import { type NativeStream, QuicStream } from "./stream.ts";

export const patch: Patch = {
  library: "@chainsafe/libp2p-quic",
  version: "2.1.1",
  without:
    "QUIC streams are read however slow their reader is, and a stream that a peer resets ends as if it were complete",
};

/** A connection of the native part. */
interface NativeConnection {
  /** Rejects when the connection is gone. */
  inboundStream(): Promise<NativeStream>;
  /** Waits while the peer allows no further streams. */
  outboundStream(): Promise<NativeStream>;
}

/** Name of the multiplexer in connections. */
export const QUIC = "quic";

class QuicMuxer extends AbstractStreamMuxer<QuicStream> {
  readonly #native: NativeConnection;

  constructor(connection: MessageStream, native: NativeConnection) {
    super(connection, { protocol: QUIC, name: "muxer" });
    this.#native = native;
    void this.#acceptAll();
  }

  override async onCreateStream({ signal }: CreateStreamOptions): Promise<QuicStream> {
    const opening = this.#native.outboundStream();
    try {
      return this.#stream(await raceSignal(opening, signal), "outbound");
    } catch (error) {
      void opening.then(abandon).catch(() => undefined);
      throw error;
    }
  }

  override onData(): void {
    // The native part separates the streams itself.
  }

  async #acceptAll(): Promise<void> {
    for (;;) {
      const native = await this.#native.inboundStream().catch(() => undefined);
      if (native === undefined) return;
      if (this.status === "open") this.onRemoteStream(this.#stream(native, "inbound"));
      else abandon(native);
    }
  }

  #stream(native: NativeStream, direction: "inbound" | "outbound"): QuicStream {
    const id = `${direction}-${native.id()}`;
    return new QuicStream({ id, direction, log: this.log.newScope(id) }, native);
  }
}

function abandon(native: NativeStream): void {
  void native.resetWrite().catch(() => undefined);
  void native.stopRead().catch(() => undefined);
}

/**
 * The part of the library's factory of multiplexers that this patch uses; there is one factory per
 * connection.
 */
interface LibraryFactory {
  readonly init?: { readonly connection?: NativeConnection };
  createStreamMuxer(connection: MessageStream): StreamMuxer;
}

/** Makes the connections that the library upgrades use these streams. */
export function withOwnStreams(upgrader: Upgrader, notices: PatchNotices): Upgrader {
  const changed = <O extends object | undefined>(options: O): O => {
    const { muxerFactory } = options as { readonly muxerFactory?: LibraryFactory };
    const native = muxerFactory?.init?.connection;
    if (!notices.isApplicable(patch, { "muxerFactory.init.connection": native })) return options;
    const createStreamMuxer = (connection: MessageStream) => new QuicMuxer(connection, native as NativeConnection);
    return { ...options, muxerFactory: { protocol: QUIC, createStreamMuxer } };
  };
  const own: Partial<Upgrader> = {
    upgradeInbound: (connection, options) => upgrader.upgradeInbound(connection, changed(options)),
    upgradeOutbound: (connection, options) => upgrader.upgradeOutbound(connection, changed(options)),
  };
  return Object.assign(Object.create(upgrader) as Upgrader, own);
}
