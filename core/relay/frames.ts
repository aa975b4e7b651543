/**
 * Messages over a stream of bytes. A frame is the length of its body in four bytes, and the body: a
 * value as V8 serializes it.
 */
import { deserialize, serialize } from "node:v8";

const HEAD_BYTES = 4;

/** Maximum length of a body that the head can name. */
export const MAX_FRAME_BYTES = 2 ** 32 - 1;

/** The other end has sent bytes that are no message. */
export class FrameFault extends Error {}

/** Returns the frame of a value. @throws when the value cannot be copied, or is too large */
export function frameOf(value: unknown, maxBytes: number = MAX_FRAME_BYTES): Buffer {
  const body = serialize(value);
  if (body.length > maxBytes)
    throw new RangeError(`A message of ${body.length} bytes cannot be sent: at most ${maxBytes} are allowed`);
  const frame = Buffer.allocUnsafe(HEAD_BYTES + body.length);
  frame.writeUInt32BE(body.length);
  body.copy(frame, HEAD_BYTES);
  return frame;
}

/**
 * Finds the frames in what arrives. It needs at most the memory of one body of the maximum length
 * and the pieces that have been pushed, however small the pieces are.
 */
export class FrameDecoder {
  readonly #maxBytes: number;
  readonly #pieces: Buffer[] = [];
  readonly #head = Buffer.alloc(HEAD_BYTES);
  #body: Buffer | undefined;
  /** Number of bytes of the head, or of the body, that have arrived. */
  #filled = 0;

  constructor(maxBytes: number = MAX_FRAME_BYTES) {
    this.#maxBytes = maxBytes;
  }

  push(piece: Buffer): void {
    this.#pieces.push(piece);
  }

  /**
   * Returns the next value; undefined if none has arrived completely.
   * @throws {FrameFault} for a body that is too long or that cannot be deserialized
   */
  next(): { readonly value: unknown } | undefined {
    if (this.#body === undefined) {
      if (!this.#fill(this.#head)) return undefined;
      const length = this.#head.readUInt32BE();
      if (length > this.#maxBytes)
        throw new FrameFault(`a message of ${length} bytes, and at most ${this.#maxBytes} are allowed`);
      this.#body = Buffer.allocUnsafeSlow(length);
    }
    if (!this.#fill(this.#body)) return undefined;
    const body = this.#body;
    this.#body = undefined;
    return { value: read(body) };
  }

  /** Copies what has arrived into the buffer. Returns true once it is full, and begins again. */
  #fill(target: Buffer): boolean {
    while (this.#filled < target.length) {
      const piece = this.#pieces.shift();
      if (piece === undefined) return false;
      const count = piece.copy(target, this.#filled);
      this.#filled += count;
      if (count < piece.length) this.#pieces.unshift(piece.subarray(count));
    }
    this.#filled = 0;
    return true;
  }
}

function read(body: Buffer): unknown {
  try {
    return deserialize(body);
  } catch {
    throw new FrameFault("a message that cannot be read");
  }
}
