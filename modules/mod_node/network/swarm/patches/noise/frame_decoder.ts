/**
 * Cuts what a noise connection receives into frames without copying. The library's decoder copies every frame that
 * arrives in more than one piece, which most do.
 */
import type { MessageStream } from "@libp2p/interface";
import { Uint8ArrayList } from "uint8arraylist";
import type { Patch, PatchNotices } from "../notices.ts";

export const patch: Patch = {
  library: "@libp2p/noise",
  version: "17.0.3",
  without: "frames are copied once more when they are read",
};

type Bytes = Uint8Array | Uint8ArrayList;

const TAG_SIZE = 16;
const LENGTH_SIZE = 2;

/** Decodes frames of the noise specification for libp2p: each follows its length, two bytes, big-endian. */
export class NoiseFrameDecoder {
  #lengthBytes = 0;
  #missing = 0;
  #frame = new Uint8ArrayList();

  /** The frames that are complete now, as views of the bytes received. Empty ones are left out. */
  *decode(bytes: Bytes): Generator<Uint8ArrayList, void, undefined> {
    for (const piece of bytes instanceof Uint8Array ? [bytes] : bytes) yield* this.#decodePiece(piece);
  }

  *#decodePiece(bytes: Uint8Array): Generator<Uint8ArrayList, void, undefined> {
    for (let at = 0; at < bytes.length; ) {
      if (this.#lengthBytes < LENGTH_SIZE) {
        this.#missing = this.#missing * 256 + (bytes[at++] as number);
        this.#lengthBytes += 1;
      } else {
        const piece = bytes.subarray(at, at + this.#missing);
        at += piece.length;
        this.#missing -= piece.length;
        this.#frame.append(piece);
      }
      if (this.#lengthBytes < LENGTH_SIZE || this.#missing > 0) continue;
      this.#lengthBytes = 0;
      const frame = this.#frame;
      if (frame.length === 0) continue;
      this.#frame = new Uint8ArrayList();
      yield frame;
    }
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
type Frames = readonly Uint8ArrayList[];

/** Takes the place of the library's decoder in a connection that noise has just secured. */
export function replaceFrameDecoder(connection: MessageStream, notices: PatchNotices): void {
  const noise = connection as MessageStream & Partial<NoiseConnection>;
  const { handshake, decoder, decrypt } = noise;
  const buffer = decoder?.buffer;
  const parts = { "decoder.buffer": buffer, "handshake.decrypt": handshake?.decrypt, decrypt };
  if (!notices.isApplicable(patch, parts) || handshake === undefined || buffer === undefined) return;
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
    }
    return text;
  };
}
