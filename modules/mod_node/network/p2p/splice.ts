/** Splices a stream to a peer and a local socket: bytes flow both ways, each direction ends on its own. */
import type { Socket } from "node:net";
import type { Stream } from "@libp2p/interface";
import { allowBuffering, drained, pause, resume } from "../swarm/stream_backpressure.ts";

/**
 * Resolves when both are closed. When one fails the other is reset. Not so when the peer resets its stream after the
 * local side has ended: go-ipfs 0.9 closes both directions when it reads the end of one, and the reset may overtake the
 * end. The socket must allow half-open use.
 */
export async function splice(stream: Stream, socket: Socket): Promise<void> {
  const closed = [whenSocketCloses(socket, stream), whenStreamCloses(stream, socket)];
  pipeToSocket(stream, socket);
  pipeToStream(socket, stream);
  await Promise.all(closed);
}

/** The stream was reset, and bytes may be missing. */
const isCut = ({ status }: Stream, socket: Socket): boolean =>
  status === "aborted" || (status === "reset" && !socket.readableEnded);

/** The stream has ended, and nothing waits in it. */
const isRead = ({ readableEnded, readBufferLength }: Stream): boolean => readableEnded && readBufferLength === 0;

/** No faster than the socket takes it: the stream's window holds the peer back. */
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
  // libp2p pushes back what came together with the negotiation, after the end if that came as well: then the rest is
  // delivered in one piece, to the listener above first, and there is no other event for the end.
  if (isRead(stream)) end();
  else stream.addEventListener(stream.readableEnded ? "message" : "end", end, { once: true });
}

/** No faster than the stream takes it. */
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

/** Resolves when the stream is closed; resets the socket when it failed. */
async function whenStreamCloses(stream: Stream, socket: Socket): Promise<void> {
  if (stream.status !== "open" && stream.status !== "closing") {
    if (isCut(stream, socket)) cutOff(socket);
    return;
  }
  const { promise, resolve } = Promise.withResolvers<void>();
  const closed = ({ error }: { readonly error?: Error | undefined }) => {
    // Without an error, what waits in the stream is still delivered before it ends.
    if (error !== undefined && isCut(stream, socket)) cutOff(socket);
    resolve();
  };
  stream.addEventListener("close", closed, { once: true });
  await promise;
}

/** Resolves when the socket is closed; resets the stream when it failed, or when what the peer sends reaches nobody. */
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
 * After a part of what there was to send the other end gets a reset. Where nothing came at all, as from a peer that does
 * not reach its target, the connection is closed as by go-ipfs.
 */
function cutOff(socket: Socket): void {
  if (socket.bytesWritten === 0) socket.destroy();
  else resetSocket(socket);
}

/** The other end gets a reset, unless this end is shut down already: then Node cannot send one. */
export function resetSocket(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
