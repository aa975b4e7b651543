/**
 * The streams of a QUIC connection in place of the library's, which read without bound however slow their reader is,
 * take a reset for an end, lose streams that come before anybody listens, and read 4 KiB at a time.
 */
import type { CreateStreamOptions, MessageStream, StreamMuxer, Upgrader } from "@libp2p/interface";
import { AbstractStreamMuxer } from "@libp2p/utils";
import { raceSignal } from "../../../../util/async/abortable.ts";
import type { Patch, PatchNotices } from "../notices.ts";
import { type NativeStream, QuicStream } from "./stream.ts";

export const patch: Patch = {
  library: "@chainsafe/libp2p-quic",
  version: "2.1.1",
  without: "streams over QUIC are read however slow their reader is, and one that a peer resets ends as if complete",
};

/** A connection of the native part. */
interface NativeConnection {
  /** Rejects when the connection is gone. */
  inboundStream(): Promise<NativeStream>;
  /** Waits while the peer allows no more streams. */
  outboundStream(): Promise<NativeStream>;
}

/** As connections name it. */
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
    // QUIC tells its streams apart by itself.
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

/** What is used of the library's factory of multiplexers: one for each connection. */
interface LibraryFactory {
  readonly init?: { readonly connection?: NativeConnection };
  createStreamMuxer(connection: MessageStream): StreamMuxer;
}

/** Has the connections that the library upgrades use these streams. */
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
