/**
 * Cuts what a noise connection receives into frames, of which only one that spans two reads is copied, and keeps nothing of what it
 * has read: the next read may write over it. The library's decoder keeps views.
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

/** The encrypter, as connections name it. */
export const NOISE = "/noise";

type Bytes = Uint8Array | Uint8ArrayList;

const TAG_SIZE = 16;
const LENGTH_SIZE = 2;

/**
 * Decodes frames of the noise specification for libp2p: each follows its length, two bytes, big-endian. Nothing of what it was
 * given is kept: a frame that is not complete is a copy.
 */
export class NoiseFrameDecoder {
  #lengthBytes = 0;
  #length = 0;
  /** The beginning of a frame, as far as it has come. */
  #whole: Uint8Array | undefined;
  #held = 0;

  /** The frames that are complete now, as views of the bytes received or copies. Empty ones are left out. */
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
      const piece = bytes.subarray(at, at + this.#length - this.#held);
      at += piece.length;
      const frame = this.#complete(piece);
      if (frame === undefined) return;
      this.#lengthBytes = 0;
      this.#length = 0;
      if (frame.length > 0) yield frame;
    }
  }

  #complete(piece: Uint8Array): Uint8Array | undefined {
    if (this.#whole === undefined && piece.length === this.#length) return piece;
    this.#whole ??= Buffer.allocUnsafeSlow(this.#length);
    this.#whole.set(piece, this.#held);
    this.#held += piece.length;
    if (this.#held < this.#length) return undefined;
    const frame = this.#whole;
    this.#whole = undefined;
    this.#held = 0;
    return frame;
  }
}

/** What is used of the library's encrypted connection, which decrypts and hands on one by one what its decoder gives. */
interface NoiseConnection {
  readonly handshake: { decrypt(frame: Bytes): Bytes };
  /** `buffer` holds what arrived behind the handshake and is no complete frame yet. */
  decoder: { decode(bytes: Bytes): Iterable<Frames>; readonly buffer?: Bytes };
  decrypt(frames: Frames): Bytes;
}

/** All that one read completed: they are handed on together, since each time costs the layers above as much as a frame does. */
type Frames = readonly Uint8Array[];

/**
 * Takes the place of the library's decoder in a connection that noise has just secured; then nothing of what it receives is kept.
 * False where it cannot.
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
