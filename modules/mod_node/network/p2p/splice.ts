/**
 * Connects a stream of a peer with a local socket: bytes flow both ways, and each direction ends
 * independently.
 */
import type { Socket } from "node:net";
import type { Stream } from "@libp2p/interface";
import { allowBuffering, drained, pause, resume } from "../swarm/stream_backpressure.ts";

/**
 * Resolves when both are closed. When one fails, the other is reset, with one exception: the peer
 * may reset its stream after the local side has ended. go-ipfs 0.9 closes both directions when it
 * reads the end of one, and the reset may overtake the end. The socket must allow half-open use.
 */
export async function splice(stream: Stream, socket: Socket): Promise<void> {
  const closed = [whenSocketCloses(socket, stream), whenStreamCloses(stream, socket)];
  pipeToSocket(stream, socket);
  pipeToStream(socket, stream);
  await Promise.all(closed);
}

/** Whether the stream was reset, so that bytes may be missing. */
const isCut = ({ status }: Stream, socket: Socket): boolean =>
  status === "aborted" || (status === "reset" && !socket.readableEnded);

/** Whether the stream has ended and its buffer is empty. */
const isRead = ({ readableEnded, readBufferLength }: Stream): boolean => readableEnded && readBufferLength === 0;

/** Writes no faster than the socket accepts: the stream's window slows the peer down. */
function pipeToSocket(stream: Stream, socket: Socket): void {
  allowBuffering(stream);
  stream.addEventListener("message", ({ data }) => {
    const pieces = data instanceof Uint8Array ? [data] : [...data];
    for (const piece of pieces) if (!socket.write(piece)) pause(stream);
  });
  socket.on("drain", () => resume(stream));
  const end = () => {
    if (!isCut(stream, socket)) socket.end();
  };
  // libp2p pushes back data that arrived together with the negotiation, and does so after the end
  // event if the stream had already ended. The remaining data is then delivered in one piece, to
  // the listener above first, without another end event.
  if (isRead(stream)) end();
  else stream.addEventListener(stream.readableEnded ? "message" : "end", end, { once: true });
}

/** Sends no faster than the stream accepts. */
function pipeToStream(socket: Socket, stream: Stream): void {
  socket.on("data", (bytes: Buffer) => {
    try {
      if (stream.send(bytes)) return;
    } catch {
      socket.destroy();
      return;
    }
    socket.pause();
    drained(stream).then(
      () => socket.resume(),
      () => socket.destroy(),
    );
  });
  socket.on("end", () => void stream.close().catch(() => socket.destroy()));
}

/** Resolves when the stream is closed; resets the socket if the stream failed. */
async function whenStreamCloses(stream: Stream, socket: Socket): Promise<void> {
  if (stream.status !== "open" && stream.status !== "closing") {
    if (isCut(stream, socket)) cutOff(socket);
    return;
  }
  const { promise, resolve } = Promise.withResolvers<void>();
  const closed = ({ error }: { readonly error?: Error | undefined }) => {
    // Without an error, buffered data of the stream is delivered before it ends.
    if (error !== undefined && isCut(stream, socket)) cutOff(socket);
    resolve();
  };
  stream.addEventListener("close", closed, { once: true });
  await promise;
}

/**
 * Resolves when the socket is closed; resets the stream if the socket failed, or if data of the
 * peer could not be delivered.
 */
function whenSocketCloses(socket: Socket, stream: Stream): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.on("error", () => {});
  socket.once("close", (failed: boolean) => {
    if (failed || !isRead(stream)) stream.abort(new Error("the local connection is closed"));
    resolve();
  });
  return promise;
}

/**
 * Resets the socket if a part of the data was delivered. If nothing arrived, for example because
 * the peer could not reach its target, closes the connection as go-ipfs does.
 */
function cutOff(socket: Socket): void {
  if (socket.bytesWritten === 0) socket.destroy();
  else resetSocket(socket);
}

/**
 * Resets the connection, unless this end is shut down already: Node.js cannot send a reset then. If
 * it still shuts down, Node.js never closes the descriptor, and the process uses a whole processor
 * instead of exiting.
 */
export function resetSocket(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
