/**
 * A QUIC stream with back-pressure in both directions by QUIC's own windows, which does not treat a
 * reset as an end.
 */
import { AbstractStream, type AbstractStreamInit, type SendResult } from "@libp2p/utils";
import { Uint8ArrayList } from "uint8arraylist";

/** A stream of the native part. All calls reject when the connection is gone. */
export interface NativeStream {
  id(): string;
  /** Resolves to at most that many bytes; to null at the end. */
  read(maxLength: number): Promise<Uint8Array | null>;
  /**
   * Resolves when QUIC has accepted all data. Calls must not overlap, because their order would be
   * undefined.
   */
  write(data: Uint8Array): Promise<void>;
  /** Resolves without any effect when the peer has stopped reading: see `#endWrite`. */
  finishWrite(): Promise<void>;
  resetWrite(): Promise<void>;
  stopRead(): Promise<void>;
}

/** Maximum number of bytes per read. */
const READ_SIZE = 64 * 1024;
/**
 * Number of unread bytes above which reading pauses; the peer may still send what its window
 * allows.
 */
const MAX_UNREAD = 256 * 1024;
/** Number of unwritten bytes above which the sender has to wait. */
const MAX_UNWRITTEN = 512 * 1024;

/**
 * Error texts of the native part for a stream that the peer has reset, and for one that it has
 * stopped reading.
 */
const RESET = /^stream reset by peer/;
const STOPPED = /^sending stopped by peer/;

/** A byte for a write that always fails, so it is never sent: see `#endWrite`. */
const PROBE = new Uint8Array(1);

const ignore = () => undefined;

export class QuicStream extends AbstractStream {
  readonly #native: NativeStream;
  #wake: (() => void) | undefined;
  #waiting: Uint8ArrayList = new Uint8ArrayList();
  #writing: Promise<void> | undefined;
  #isFinished = false;

  constructor(init: AbstractStreamInit, native: NativeStream) {
    super(init);
    this.#native = native;
    this.addEventListener("close", () => {
      this.#wake?.();
      void this.#endWrite();
    });
    void this.#readAll();
  }

  override sendData(data: Uint8ArrayList): SendResult {
    const { byteLength } = data;
    // Data that the peer does not read counts as sent.
    if (this.remoteReadStatus !== "closed") {
      // The data is copied because another thread reads it later, while senders may reuse their
      // memory.
      this.#waiting.append(data.slice());
      this.#writing ??= this.#writeAll();
    }
    return { sentBytes: byteLength, canSendMore: this.#waiting.byteLength < MAX_UNWRITTEN };
  }

  override async sendCloseWrite(): Promise<void> {
    await this.#writing;
    try {
      await this.#native.finishWrite();
      this.#isFinished = true;
    } catch {
      // The stream is reset when it closes.
    }
  }

  /** Further data is still read and discarded, so that the end of the stream is noticed. */
  override async sendCloseRead(): Promise<void> {
    this.#wake?.();
  }

  override sendReset(): void {
    this.#waiting = new Uint8ArrayList();
    void this.#native.resetWrite().catch(ignore);
    void this.#native.stopRead().catch(ignore);
  }

  override sendPause(): void {
    // The read loop checks whether the stream is paused.
  }

  override sendResume(): void {
    this.#wake?.();
  }

  protected override dispatchReadBuffer(): void {
    super.dispatchReadBuffer();
    this.#wake?.();
  }

  async #readAll(): Promise<void> {
    try {
      for (;;) {
        while (this.#isFull()) await this.#moved();
        if (this.status !== "open") return;
        const bytes = await this.#native.read(READ_SIZE);
        if (bytes === null) break;
        this.onData(new Uint8ArrayList(bytes));
      }
      this.onRemoteCloseWrite();
    } catch (error) {
      if (this.status !== "open") return;
      if (RESET.test((error as Error).message)) this.onRemoteReset();
      else this.onTransportClosed(error as Error);
    }
  }

  #isFull(): boolean {
    if (this.status !== "open" || this.readStatus === "closed" || this.readStatus === "closing") return false;
    return this.readStatus === "paused" || this.readBufferLength >= MAX_UNREAD;
  }

  #moved(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  async #writeAll(): Promise<void> {
    try {
      while (this.#waiting.byteLength > 0) {
        const bytes = this.#waiting.subarray();
        this.#waiting = new Uint8ArrayList();
        await this.#native.write(bytes);
        if (this.writableNeedsDrain && this.#waiting.byteLength < MAX_UNWRITTEN) this.safeDispatchEvent("drain");
      }
    } catch (error) {
      this.#unwritable(error as Error);
    } finally {
      this.#writing = undefined;
    }
  }

  /**
   * Handles a peer that has stopped reading and may still send: only outgoing data is discarded.
   */
  #unwritable(error: Error): void {
    this.#waiting = new Uint8ArrayList();
    if (this.status !== "open") return;
    if (!STOPPED.test(error.message)) {
      this.onTransportClosed(error);
      return;
    }
    void this.#native.resetWrite().catch(ignore);
    this.onRemoteCloseRead();
    if (this.writableNeedsDrain) this.safeDispatchEvent("drain");
  }

  /**
   * Makes sure that our direction of a closed stream has ended for the native part, too. A peer may
   * have 256 streams open, and each counts until both directions have ended. `finishWrite` does
   * nothing once the peer has stopped reading, which go-libp2p does just before it ends a stream,
   * and does not report that. Only a write after it does: it sends nothing and fails in both cases,
   * with different errors. While the window of the connection is full it waits, and nothing waits
   * for it. A direction that cannot be finished is reset; otherwise it would stay open until its
   * object is garbage-collected.
   */
  async #endWrite(): Promise<void> {
    if (this.#isFinished) {
      const error = await this.#native.write(PROBE).catch((reason: Error) => reason);
      if (error === undefined || !STOPPED.test(error.message)) return;
    }
    await this.#native.resetWrite().catch(ignore);
  }
}
