/** The data of a put request, read in pieces, again for each retry. */
import { createHash } from "node:crypto";
import { failure } from "../../../util/errors.ts";
import type { FileStretch, Payload } from "./objects.ts";

/** Bytes of a file in memory at a time. */
const PIECE_BYTES = 1024 * 1024;

/** Returns a part of a payload. */
export function slice(payload: Payload, start: number, length: number): Payload {
  if (payload instanceof Uint8Array) return payload.subarray(start, start + length);
  return { file: payload.file, start: payload.start + start, length };
}

/** Yields the bytes of a payload in order. Each piece of a file is a new array. */
export async function* piecesOf(payload: Payload): AsyncGenerator<Uint8Array, void, undefined> {
  if (payload instanceof Uint8Array) yield payload;
  else yield* filePieces(payload);
}

/**
 * Yields the bytes of a payload in order. A piece is valid until the caller requests the next one:
 * two buffers alternate, and one is filled while the other is used. A new array for each piece
 * would cost a third of the time of sending, because of garbage collection.
 */
export async function* reusedPieces(payload: Payload): AsyncGenerator<Uint8Array, void, undefined> {
  if (payload instanceof Uint8Array) return void (yield payload);
  const { file, start, length } = payload;
  const buffers = [0, 1].map((at) =>
    Buffer.allocUnsafeSlow(Math.min(PIECE_BYTES, Math.max(0, length - at * PIECE_BYTES))),
  );
  const read = (at: number) => {
    const into = buffers[(at / PIECE_BYTES) % 2] as Buffer;
    return readWhole(file, into.subarray(0, Math.min(PIECE_BYTES, length - at)), start + at);
  };
  let next = length === 0 ? undefined : read(0);
  try {
    for (let at = 0; next !== undefined; at += PIECE_BYTES) {
      const piece = await next;
      next = at + PIECE_BYTES < length ? read(at + PIECE_BYTES) : undefined;
      // A caller that stops reading does not need this error.
      next?.catch(() => {});
      yield piece;
    }
  } finally {
    // The caller may close the file when this generator has ended, so the pending read must finish
    // first.
    await next?.catch(() => {});
  }
}

async function* filePieces({ file, start, length }: FileStretch): AsyncGenerator<Uint8Array, void, undefined> {
  for (let done = 0; done < length; ) {
    const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, length - done));
    yield await readWhole(file, piece, start + done);
    done += piece.length;
  }
}

/** Fills `into` from the file. */
async function readWhole(file: FileStretch["file"], into: Uint8Array, at: number): Promise<Uint8Array> {
  for (let done = 0; done < into.length; ) {
    const read = await file.read([into.subarray(done)], at + done).catch((error: Error) => {
      throw failure("OBJECT_STORE_FAULT", { reason: `cannot read a file to upload: ${error.message}` }, error);
    });
    if (read === 0)
      throw failure("OBJECT_STORE_FAULT", { reason: `a file to upload ends ${into.length - done} bytes too early` });
    done += read;
  }
  return into;
}

export async function sha256Of(payload: Payload): Promise<Uint8Array> {
  const hash = createHash("sha256");
  for await (const piece of piecesOf(payload)) hash.update(piece);
  return hash.digest();
}

export async function bytesOf(payload: Payload): Promise<Uint8Array> {
  return payload instanceof Uint8Array ? payload : Buffer.concat(await Array.fromAsync(piecesOf(payload)));
}
