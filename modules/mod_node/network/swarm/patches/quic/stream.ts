/** A stream of QUIC: back-pressure both ways by QUIC's own windows, and a reset is not taken for an end. */
import { AbstractStream, type AbstractStreamInit, type SendResult } from "@libp2p/utils";
import { Uint8ArrayList } from "uint8arraylist";

/** A stream of the native part. All of its calls reject when the connection is gone. */
export interface NativeStream {
  id(): string;
  /** Up to so many bytes; null at the end. */
  read(maxLength: number): Promise<Uint8Array | null>;
  /** Resolves when QUIC has taken all of it. No two at a time: their order would not be kept. */
  write(data: Uint8Array): Promise<void>;
  finishWrite(): Promise<void>;
  resetWrite(): Promise<void>;
  stopRead(): Promise<void>;
}

/** Bytes that are read at a time. */
const READ_SIZE = 64 * 1024;
/** Unread bytes beyond which the peer has to wait, beside what its window lets it send. */
const MAX_UNREAD = 256 * 1024;
/** Bytes that wait to be written beyond which the sender has to wait. */
const MAX_UNWRITTEN = 512 * 1024;

/** What the native part says when the peer has reset a stream, and when it reads no more. */
const RESET = /^stream reset by peer/;
const STOPPED = /^sending stopped by peer/;

const ignore = () => undefined;

export class QuicStream extends AbstractStream {
  readonly #native: NativeStream;
  #wake: (() => void) | undefined;
  #waiting: Uint8ArrayList = new Uint8ArrayList();
  #writing: Promise<void> | undefined;

  constructor(init: AbstractStreamInit, native: NativeStream) {
    super(init);
    this.#native = native;
    this.addEventListener("close", () => this.#wake?.());
    void this.#readAll();
  }

  override sendData(data: Uint8ArrayList): SendResult {
    const { byteLength } = data;
    // What nobody reads counts as sent.
    if (this.remoteReadStatus !== "closed") {
      // Copied, since it is read later, by another thread: senders may use their memory again.
      this.#waiting.append(data.slice());
      this.#writing ??= this.#writeAll();
    }
    return { sentBytes: byteLength, canSendMore: this.#waiting.byteLength < MAX_UNWRITTEN };
  }

  override async sendCloseWrite(): Promise<void> {
    await this.#writing;
    await this.#native.finishWrite().catch(ignore);
  }

  /** What still comes is read and thrown away, so that the end of the stream is seen. */
  override async sendCloseRead(): Promise<void> {
    this.#wake?.();
  }

  override sendReset(): void {
    this.#waiting = new Uint8ArrayList();
    void this.#native.resetWrite().catch(ignore);
    void this.#native.stopRead().catch(ignore);
  }

  override sendPause(): void {
    // Nothing is read while it is paused.
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

  /** A peer that reads no more may still send: only what we send is thrown away. */
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
}
