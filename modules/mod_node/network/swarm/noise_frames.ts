/** Frames of noise connections, as they are taken out of what comes. */
import type { MessageStream } from "@libp2p/interface";
import { Uint8ArrayList } from "uint8arraylist";

type Bytes = Uint8Array | Uint8ArrayList;

const tagLength = 16;
const headLength = 2;

/** Cuts what comes into frames: each stands behind its length, two bytes, the higher one first. */
export class NoiseFrameDecoder {
  #head = 0;
  #missing = 0;
  #frame = new Uint8ArrayList();

  /** The frames that are whole now: views of what came. Empty ones are passed over. */
  *decode(bytes: Bytes): Generator<Uint8ArrayList, void, undefined> {
    for (const piece of bytes instanceof Uint8Array ? [bytes] : bytes) yield* this.#cut(piece);
  }

  *#cut(bytes: Uint8Array): Generator<Uint8ArrayList, void, undefined> {
    for (let at = 0; at < bytes.length; ) {
      if (this.#head < headLength) {
        this.#missing = this.#missing * 256 + (bytes[at++] as number);
        this.#head += 1;
      } else {
        const piece = bytes.subarray(at, at + this.#missing);
        at += piece.length;
        this.#missing -= piece.length;
        this.#frame.append(piece);
      }
      if (this.#head < headLength || this.#missing > 0) continue;
      this.#head = 0;
      const frame = this.#frame;
      if (frame.length === 0) continue;
      this.#frame = new Uint8ArrayList();
      yield frame;
    }
  }
}

/** As the library's noise connections are inside. */
interface Inside {
  readonly handshake: { decrypt(frame: Bytes): Bytes };
  /** Has in its buffer what came behind the handshake and is no whole frame. */
  decoder: { decode(bytes: Bytes): Iterable<Bytes>; readonly buffer?: Bytes };
  decrypt(frame: Bytes): Bytes;
}

/** Takes the place of the library's reading, which copies each frame that came in two pieces. Other connections stay. */
export function replaceFrameDecoder(connection: MessageStream): void {
  const inside = connection as MessageStream & Partial<Inside>;
  const { handshake, decoder } = inside;
  if (handshake === undefined || decoder?.buffer === undefined) return;
  const frames = new NoiseFrameDecoder();
  for (const _ of frames.decode(decoder.buffer)) throw new Error("a frame that was left behind");
  inside.decoder = frames;
  inside.decrypt = (frame) => {
    if (frame.byteLength < tagLength) throw new Error("a frame without its tag");
    return handshake.decrypt(frame);
  };
}
