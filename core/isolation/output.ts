/**
 * Joins the output of a worker to larger messages. Node.js posts each write to the host separately,
 * and many small messages would block the host.
 */

/**
 * Maximum number of bytes in one message to the host. The next one is sent once the host has read
 * it.
 */
const MAX_PIECE = 256 * 1024;

interface Piece {
  readonly chunk: string | Uint8Array;
  readonly encoding: BufferEncoding;
}

type Write = (pieces: readonly Piece[], done: (error?: Error | null) => void) => void;

/**
 * Makes the streams of a worker send their buffered writes in larger pieces, one after the other.
 */
export function gatherOutput(...streams: NodeJS.WritableStream[]): void {
  for (const stream of streams as unknown as { _writev: Write }[]) {
    const write = stream._writev.bind(stream);
    stream._writev = (pieces, done) => {
      const all = Buffer.concat(pieces.map(({ chunk, encoding }) => bytesOf(chunk, encoding)));
      const next = (from: number) => (error?: Error | null) => {
        if (error != null || from >= all.length) done(error);
        else
          write([{ chunk: all.subarray(from, from + MAX_PIECE), encoding: "buffer" as never }], next(from + MAX_PIECE));
      };
      next(0)();
    };
  }
}

function bytesOf(chunk: string | Uint8Array, encoding: BufferEncoding): Uint8Array {
  return typeof chunk === "string" ? Buffer.from(chunk, encoding) : chunk;
}
