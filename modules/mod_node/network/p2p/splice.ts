/** Carrying bytes between a stream to a peer and a local socket, both ways, each end closed on its own. */
import type { Socket } from "node:net";
import type { Stream, StreamMessageEvent } from "@libp2p/interface";
import { allowBuffering, drained, pause, resume } from "../swarm/stream_backpressure.ts";

/**
 * Resolves when both are closed. Whichever fails takes the other with it; but a reset by the peer, once the local side
 * has said all, is an end: go-ipfs 0.9 closes both directions when it hears the end of one, and the reset of its stream
 * may overtake its end. The socket must allow half-open use.
 */
export function splice(stream: Stream, socket: Socket): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const open = new Set<Stream | Socket>([stream, socket]);
  const closed = (one: Stream | Socket) => {
    open.delete(one);
    if (open.size === 0) resolve();
  };

  // To the socket, no faster than it takes: the peer is held back by the window of the stream.
  allowBuffering(stream);
  const toSocket = ({ data }: StreamMessageEvent) => {
    const pieces = data instanceof Uint8Array ? [data] : [...data];
    for (const piece of pieces) if (!socket.write(piece)) pause(stream);
  };
  socket.on("drain", () => resume(stream));
  stream.addEventListener("message", toSocket);
  const isCut = () => stream.status === "aborted" || (stream.status === "reset" && !socket.readableEnded);
  const ended = () => {
    if (!isCut()) socket.end();
  };
  // What came together with the negotiation is pushed back by libp2p, behind the end if that has come, too: the rest is
  // then delivered in one piece, after `toSocket`, and no other end is told of.
  const isRead = () => stream.readableEnded && stream.readBufferLength === 0;
  if (isRead()) ended();
  else stream.addEventListener(stream.readableEnded ? "message" : "end", ended, { once: true });

  // To the stream, no faster than it takes.
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

  stream.addEventListener(
    "close",
    ({ error }) => {
      closed(stream);
      // Without one, what has come and still waits is delivered, and then the stream ends.
      if (error !== undefined && isCut()) resetSocket(socket);
    },
    { once: true },
  );
  socket.on("error", () => {});
  socket.once("close", (failed: boolean) => {
    closed(socket);
    // Both directions of the socket are over: nobody is left to read what the peer may still say.
    if (failed || !isRead()) stream.abort(new Error("the local connection is closed"));
  });
  if (stream.status !== "open" && stream.status !== "closing") {
    closed(stream);
    if (isCut()) resetSocket(socket);
  }
  return promise;
}

/** The other end hears of it, unless the socket is being shut down already: then Node cannot. */
export function resetSocket(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
