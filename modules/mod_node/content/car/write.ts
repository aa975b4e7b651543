/** Writes blocks as an archive ("CARv1 specification"). */
import type { CID } from "multiformats/cid";
import { varintLength, writeVarint } from "../../formats/protobuf/varint.ts";
import { writeHeader } from "./header.ts";

/** Small sections are joined up to this many bytes; larger blocks are passed on as they are. */
const MAX_JOINED_BYTES = 64 * 1024;

interface CarBlock {
  readonly cid: CID;
  readonly bytes: Uint8Array;
}

/**
 * The pieces of an archive, which are not changed afterwards. @throws what the source throws, after the pieces before
 * it
 */
export async function* writeCar(
  roots: readonly CID[],
  blocks: AsyncIterable<CarBlock>,
): AsyncGenerator<Uint8Array, void, undefined> {
  const out = new PieceBuffer();
  const header = writeHeader(roots);
  out.add(lengthOf(header.length), header);
  let failed: { readonly reason: unknown } | undefined;
  const source = blocks[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await source.next().catch((reason: unknown) => {
        failed = { reason };
        return { done: true, value: undefined } as const;
      });
      if (next.done === true) break;
      const { cid, bytes } = next.value;
      const head = Buffer.concat([lengthOf(cid.bytes.length + bytes.length), cid.bytes]);
      if (bytes.length < MAX_JOINED_BYTES / 2) out.add(head, bytes);
      else {
        out.add(head);
        yield* out.take();
        yield bytes;
      }
      if (out.length >= MAX_JOINED_BYTES) yield* out.take();
    }
    yield* out.take();
    if (failed !== undefined) throw failed.reason;
  } finally {
    await source.return?.();
  }
}

function lengthOf(length: number): Uint8Array {
  const bytes = new Uint8Array(varintLength(length));
  writeVarint(bytes, 0, length);
  return bytes;
}

class PieceBuffer {
  #pieces: Uint8Array[] = [];
  length = 0;

  add(...pieces: readonly Uint8Array[]): void {
    for (const piece of pieces) {
      this.#pieces.push(piece);
      this.length += piece.length;
    }
  }

  *take(): Generator<Uint8Array, void, undefined> {
    if (this.length > 0) yield Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.length = 0;
  }
}
