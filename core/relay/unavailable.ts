/** The 503 response when the process that should respond has ended and is not replaced in time. */
import type { ServerResponse } from "node:http";
import { Socket, type SocketConstructorOpts } from "node:net";
import type { SocketHandle } from "./ipc_channel.ts";

/**
 * Milliseconds to read what a client still sends. Closing a connection with unread bytes may lose
 * the response.
 */
const LINGER_MS = 1000;

const text = "503 Service Unavailable: the process for this request is being restarted\n";
const headers = {
  "Content-Type": "text/plain; charset=utf-8",
  "Retry-After": "1",
  "Cache-Control": "no-store",
};

/** Sends the 503 response, unless the response has already begun. */
export function sendUnavailable(response: ServerResponse): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(503, headers);
  response.end(text);
}

/**
 * Sends the 503 response on a bare HTTP/1.1 connection, of which `head` has been read, and closes
 * it. The handle is closed only after `attempt` has settled: Node.js aborts a process that closes a
 * handle while it is being sent.
 */
export function refuseConnection(handle: SocketHandle, head: Uint8Array, attempt: Promise<unknown>): void {
  const closable = handle as { close(done?: () => void): void };
  const close = closable.close.bind(handle);
  closable.close = (done) => void attempt.finally(() => close(done));
  const socket = new Socket({ handle, allowHalfOpen: true } as SocketConstructorOpts);
  const fields = { ...headers, Date: new Date().toUTCString(), Connection: "close", "Content-Length": text.length };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  const isHead = Buffer.from(head.subarray(0, 5)).toString("latin1") === "HEAD ";
  socket.on("error", () => undefined);
  socket.end(`HTTP/1.1 503 Service Unavailable\r\n${lines.join("")}\r\n${isHead ? "" : text}`);
  socket.resume();
  const late = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => clearTimeout(late)).once("end", () => socket.destroySoon());
}
