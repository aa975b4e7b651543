/**
 * Splits the data of a noise connection into frames, and copies only frames that span two reads. It
 * retains nothing of what it has read, so the next read may overwrite it. The library's decoder
 * retains views.
 */
import type { MessageStream } from "@libp2p/interface";
import { Uint8ArrayList } from "uint8arraylist";
import { detach } from "../../../../util/async/read_all.ts";
import type { Patch, PatchNotices } from "../notices.ts";

export const patch: Patch = {
  library: "@libp2p/noise",
  version: "17.0.3",
  without: "frames are copied once more when they are read",
};

/** Name of the encrypter in connections. */
export const NOISE = "/noise";

type Bytes = Uint8Array | Uint8ArrayList;

const TAG_SIZE = 16;
const LENGTH_SIZE = 2;

/**
 * Decodes frames of the noise specification for libp2p. Each frame follows its length: two bytes,
 * big-endian. The decoder retains none of its input, because it copies incomplete frames.
 */
export class NoiseFrameDecoder {
  #lengthBytes = 0;
  #length = 0;
  /** The part of an incomplete frame that has arrived. */
  #partial: Uint8Array | undefined;
  #wholeBytes = 0;

  /**
   * Yields the frames that are now complete, as views of the received bytes or copies. Empty frames
   * are omitted.
   */
  *decode(bytes: Bytes): Generator<Uint8Array, void, undefined> {
    for (const piece of bytes instanceof Uint8Array ? [bytes] : bytes) yield* this.#decodePiece(piece);
  }

  *#decodePiece(bytes: Uint8Array): Generator<Uint8Array, void, undefined> {
    for (let at = 0; at < bytes.length; ) {
      if (this.#lengthBytes < LENGTH_SIZE) {
        this.#length = this.#length * 256 + (bytes[at++] as number);
        this.#lengthBytes += 1;
        if (this.#lengthBytes < LENGTH_SIZE || this.#length > 0) continue;
      }
      const piece = bytes.subarray(at, at + this.#length - this.#wholeBytes);
      at += piece.length;
      const frame = this.#complete(piece);
      if (frame === undefined) return;
      this.#lengthBytes = 0;
      this.#length = 0;
      if (frame.length > 0) yield frame;
    }
  }

  #complete(piece: Uint8Array): Uint8Array | undefined {
    if (this.#partial === undefined && piece.length === this.#length) return piece;
    this.#partial ??= Buffer.allocUnsafeSlow(this.#length);
    this.#partial.set(piece, this.#wholeBytes);
    this.#wholeBytes += piece.length;
    if (this.#wholeBytes < this.#length) return undefined;
    const frame = this.#partial;
    this.#partial = undefined;
    this.#wholeBytes = 0;
    return frame;
  }
}

/**
 * The parts of the library's encrypted connection that this patch uses. It decrypts and delivers
 * the results of its decoder one by one.
 */
interface NoiseConnection {
  readonly handshake: { decrypt(frame: Bytes): Bytes };
  /** `buffer` contains an incomplete frame that arrived after the handshake. */
  decoder: { decode(bytes: Bytes): Iterable<Frames>; readonly buffer?: Bytes };
  decrypt(frames: Frames): Bytes;
}

/**
 * All frames that one read has completed. They are delivered together, because each delivery costs
 * the layers above as much as a frame does.
 */
type Frames = readonly Uint8Array[];

/**
 * Replaces the library's decoder in a connection that noise has just secured, so that none of its
 * received data is retained. Returns false if that is not possible.
 */
export function replaceFrameDecoder(connection: MessageStream, notices: PatchNotices): boolean {
  const noise = connection as MessageStream & Partial<NoiseConnection>;
  const { handshake, decoder, decrypt } = noise;
  const buffer = decoder?.buffer;
  const parts = { "decoder.buffer": buffer, "handshake.decrypt": handshake?.decrypt, decrypt };
  if (!notices.isApplicable(patch, parts) || handshake === undefined || buffer === undefined) return false;
  const frames = new NoiseFrameDecoder();
  for (const _ of frames.decode(buffer)) throw new Error("the library left a complete frame in its buffer");
  noise.decoder = {
    decode(bytes) {
      const complete = [...frames.decode(bytes)];
      return complete.length === 0 ? [] : [complete];
    },
  };
  noise.decrypt = (complete) => {
    const text = new Uint8ArrayList();
    for (const frame of complete) {
      if (frame.byteLength < TAG_SIZE) throw new Error("a frame without its tag");
      text.append(handshake.decrypt(frame));
      detach(frame);
    }
    return text;
  };
  return true;
}
