/** What is put, read in pieces, as often as it is needed. */
import { createHash } from "node:crypto";
import { NodeError } from "../../../util/errors.ts";
import type { FileStretch, Payload } from "./objects.ts";

/** Bytes of a file that are held in memory at a time. */
const PIECE_BYTES = 1024 * 1024;

/** A part of it. */
export function slice(payload: Payload, start: number, length: number): Payload {
  if (payload instanceof Uint8Array) return payload.subarray(start, start + length);
  return { file: payload.file, start: payload.start + start, length };
}

/** Its bytes in order; of a file, each piece is an array of its own. */
export async function* piecesOf(payload: Payload): AsyncGenerator<Uint8Array, void, undefined> {
  if (payload instanceof Uint8Array) yield payload;
  else yield* filePieces(payload);
}

async function* filePieces({ file, start, length }: FileStretch): AsyncGenerator<Uint8Array, void, undefined> {
  for (let done = 0; done < length; ) {
    const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, length - done));
    const read = await file.read([piece], start + done).catch((error: Error) => {
      throw new NodeError(`a file to be stored cannot be read: ${error.message}`, { cause: error });
    });
    if (read === 0) throw new NodeError(`a file to be stored has ended ${length - done} bytes before its length`);
    yield piece.subarray(0, read);
    done += read;
  }
}

export async function sha256Of(payload: Payload): Promise<Uint8Array> {
  const hash = createHash("sha256");
  for await (const piece of piecesOf(payload)) hash.update(piece);
  return hash.digest();
}

export async function bytesOf(payload: Payload): Promise<Uint8Array> {
  return payload instanceof Uint8Array ? payload : Buffer.concat(await Array.fromAsync(piecesOf(payload)));
}
