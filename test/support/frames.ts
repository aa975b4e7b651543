/** HTTP/2 frames written by hand, for bytes that a correct client would not send. */
import { once } from "node:events";
import { connect, type TLSSocket } from "node:tls";

const type = { data: 0, headers: 1, resetStream: 3, settings: 4, ping: 6, continuation: 9 } as const;

const flag = { endStream: 0x1, endHeaders: 0x4 } as const;

/** Makes a frame. Without a payload it is empty. */
export function frame(
  kind: keyof typeof type,
  flags: number,
  stream: number,
  payload: Uint8Array = new Uint8Array(),
): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type[kind];
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/**
 * Makes the HEADERS frame of a whole request, with END_HEADERS; with END_STREAM unless a body
 * follows.
 */
export function requestFrame(stream: number, method: "GET" | "POST", path: string): Buffer {
  const flags = method === "GET" ? flag.endHeaders | flag.endStream : flag.endHeaders;
  return frame("headers", flags, stream, requestBlock(method, path));
}

/** Makes the header block of a request. */
export function requestBlock(method: "GET" | "POST", path: string): Buffer {
  // HPACK: ":method" and ":scheme https" by index, ":path" and ":authority" as literals of an
  // indexed name.
  const literal = (index: number, value: string) =>
    Buffer.concat([Buffer.from([index, value.length]), Buffer.from(value)]);
  return Buffer.concat([Buffer.from([method === "GET" ? 0x82 : 0x83, 0x87]), literal(4, path), literal(1, "x")]);
}

/** Makes RST_STREAM with the code CANCEL. */
export function resetFrame(stream: number): Buffer {
  return frame("resetStream", 0, stream, Buffer.from([0, 0, 0, 8]));
}

/**
 * Opens a connection and sends the preface and its settings. Data from the server is discarded.
 * `window`: bytes that the server may send per stream before the client allows more.
 */
export async function openFrames(port: number, window = 65_535): Promise<TLSSocket> {
  const initialWindow = Buffer.from([0, 4, 0, 0, window >> 8, window & 0xff]);
  const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ALPNProtocols: ["h2"] });
  await once(socket, "secureConnect");
  socket.on("error", () => undefined).resume();
  socket.write(
    Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame("settings", 0, 0, initialWindow)]),
  );
  return socket;
}
