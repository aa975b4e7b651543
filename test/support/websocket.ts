/** Websocket clients: a correct one, and frames written by hand. */
import { once } from "node:events";
import { WebSocket } from "ws";
import { RawConnection, type RawOptions } from "./raw.ts";

export interface Ending {
  readonly code: number;
  readonly reason: string;
}

/** A client that uses the library `ws`. Messages are queued until `next` returns them. */
export class SocketClient implements Disposable {
  readonly ws: WebSocket;
  readonly closed: Promise<Ending>;
  readonly #messages: (string | Buffer)[] = [];

  private constructor(ws: WebSocket) {
    this.ws = ws;
    ws.on("message", (data, isBinary) => {
      this.#messages.push(isBinary ? (data as Buffer) : data.toString());
      ws.emit("progress");
    });
    ws.on("error", () => undefined);
    const { promise, resolve } = Promise.withResolvers<Ending>();
    this.closed = promise;
    ws.on("close", (code, reason) => {
      resolve({ code, reason: reason.toString() });
      ws.emit("progress");
    });
  }

  /** Rejects with an error that contains the status if the server does not switch protocols. */
  static async open(
    url: string,
    options: {
      readonly protocols?: string[];
      readonly headers?: Record<string, string>;
      readonly autoPong?: boolean;
    } = {},
  ): Promise<SocketClient> {
    const { protocols = [], headers = {}, autoPong = true } = options;
    const ws = new WebSocket(url.replace(/^http/, "ws"), protocols, { headers, autoPong, rejectUnauthorized: false });
    const client = new SocketClient(ws);
    await once(ws, "open");
    return client;
  }

  /** Resolves to the next message. Rejects if the connection ends first. */
  async next(): Promise<string | Buffer> {
    while (this.#messages.length === 0) {
      if (this.ws.readyState === WebSocket.CLOSED) throw new Error("The websocket ended before the message");
      await once(this.ws, "progress", { signal: AbortSignal.timeout(120_000) });
    }
    return this.#messages.shift() as string | Buffer;
  }

  send(message: string | Uint8Array): void {
    this.ws.send(message);
  }

  close(code?: number, reason?: string): Promise<Ending> {
    this.ws.close(code, reason);
    return this.closed;
  }

  [Symbol.dispose](): void {
    this.ws.terminate();
  }
}

/** Resolves to the status with which a server refuses a websocket, or to 101. */
export async function handshakeStatus(url: string, headers: Record<string, string> = {}): Promise<number> {
  const ws = new WebSocket(url.replace(/^http/, "ws"), { headers, rejectUnauthorized: false });
  ws.on("error", () => undefined);
  const opened = once(ws, "open").then(() => 101);
  const refused = once(ws, "unexpected-response").then(([, response]) => response.statusCode as number);
  opened.catch(() => undefined);
  refused.catch(() => undefined);
  const status = await Promise.any([opened, refused]);
  ws.terminate();
  return status;
}

/** Makes the head of a handshake. A field whose value is undefined is left out. */
export function handshake(path: string, fields: Record<string, string | undefined> = {}, method = "GET"): string {
  const all: Record<string, string | undefined> = {
    Host: "localhost",
    Connection: "Upgrade",
    Upgrade: "websocket",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version": "13",
    ...fields,
  };
  const lines = Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}\r\n`]));
  return `${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`;
}

/** Opens a websocket on a raw connection. */
export async function openRaw(port: number, path: string, options?: RawOptions): Promise<RawConnection> {
  const connection = await RawConnection.open(port, options);
  connection.write(handshake(path));
  await connection.until(/^HTTP\/1\.1 101 .*\r\n\r\n/s);
  return connection;
}

const opcode = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

/** Makes a frame of a client. It is masked with zeros unless `masked` is false. */
export function clientFrame(
  kind: keyof typeof opcode | number,
  payload: string | Uint8Array = "",
  { masked = true, final = true }: { readonly masked?: boolean; readonly final?: boolean } = {},
): Buffer {
  const bytes = Buffer.from(payload);
  const code = typeof kind === "number" ? kind : opcode[kind];
  const head = Buffer.alloc(bytes.length < 126 ? 2 : bytes.length < 65_536 ? 4 : 10);
  head[0] = (final ? 0x80 : 0) | code;
  head[1] = (masked ? 0x80 : 0) | (head.length === 2 ? bytes.length : head.length === 4 ? 126 : 127);
  if (head.length === 4) head.writeUInt16BE(bytes.length, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(bytes.length), 2);
  return Buffer.concat([head, masked ? Buffer.alloc(4) : Buffer.alloc(0), bytes]);
}

/** Returns the code of the close frame at the end of the bytes, or undefined. */
export function closeCode(received: string): number | undefined {
  const bytes = Buffer.from(received, "latin1");
  const at = bytes.lastIndexOf(0x88);
  return at < 0 || bytes.length < at + 4 ? undefined : bytes.readUInt16BE(at + 2);
}
