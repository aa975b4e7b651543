/**
 * Sends requests over persistent HTTP/1 connections. The client does as little as possible, so that
 * the server is what is measured.
 */
import { connect, type Socket } from "node:net";
import { connect as connectSecure } from "node:tls";

const RECEIVE_BYTES = 256 * 1024;
const LAST_CHUNK = "0\r\n\r\n";

export interface RequestSpec {
  readonly path: string;
  readonly method?: "GET" | "POST";
  /** The body as JSON. */
  readonly body?: string;
}

export interface HttpTarget {
  readonly port: number;
  /** Whether to use TLS. The certificate is not verified. */
  readonly secure?: boolean;
}

export function requestBytes({ path, method = "GET", body }: RequestSpec, port: number): Buffer {
  const length = method === "POST" ? `Content-Length: ${body?.length ?? 0}\r\n` : "";
  const type = body === undefined ? "" : "Content-Type: application/json\r\n";
  return Buffer.from(
    `${method} ${path} HTTP/1.1\r\nHost: localhost:${port}\r\nUser-Agent: bench\r\nAccept: */*\r\n${type}${length}\r\n${body ?? ""}`,
  );
}

/** Kept-alive connections, with one request at a time on each. */
export class Connections {
  readonly #all: readonly Connection[];

  private constructor(all: readonly Connection[]) {
    this.#all = all;
  }

  static async open(endpoint: HttpTarget, count: number): Promise<Connections> {
    return new Connections(await Promise.all(Array.from({ length: count }, () => Connection.open(endpoint))));
  }

  /**
   * Sends `count` requests: the given ones in turn, beginning with the one at `from`. Rejects at
   * the first response with another status.
   */
  async ask(requests: readonly Buffer[], count: number, status = 200, from = 0): Promise<void> {
    let sent = 0;
    const work = async (connection: Connection) => {
      while (sent < count) {
        const request = requests[(from + sent) % requests.length] as Buffer;
        sent += 1;
        await connection.ask(request, status);
      }
    };
    await Promise.all(this.#all.map(work));
  }

  close(): void {
    for (const connection of this.#all) connection.close();
  }
}

class Connection {
  readonly #socket: Socket;
  #response = new ResponseParser();
  #over: { resolve(): void; reject(error: Error): void } = { resolve() {}, reject() {} };

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("error", (error) => this.#over.reject(error));
    socket.on("close", () => this.#over.reject(new Error("The connection was closed within a response")));
  }

  static open({ port, secure = false }: HttpTarget): Promise<Connection> {
    return new Promise((resolve, reject) => {
      if (secure) {
        const socket = connectSecure({ port, host: "127.0.0.1", rejectUnauthorized: false });
        const connection = new Connection(socket.setNoDelay());
        socket.on("data", (chunk: Buffer) => connection.#take(chunk));
        socket.once("secureConnect", () => resolve(connection)).once("error", reject);
        return;
      }
      let connection: Connection;
      const buffer = Buffer.allocUnsafe(RECEIVE_BYTES);
      const callback = (length: number) => {
        connection.#take(buffer.subarray(0, length));
        return true;
      };
      const socket = connect({ port, host: "127.0.0.1", noDelay: true, onread: { buffer, callback } });
      connection = new Connection(socket);
      socket.once("connect", () => resolve(connection)).once("error", reject);
    });
  }

  ask(request: Buffer, status: number): Promise<void> {
    this.#response = new ResponseParser(status);
    return new Promise((resolve, reject) => {
      this.#over = { resolve, reject };
      this.#socket.write(request);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(bytes: Buffer): void {
    try {
      if (this.#response.take(bytes)) this.#over.resolve();
    } catch (error) {
      this.#over.reject(error as Error);
    }
  }
}

/** Parses a response as it arrives, only to find its end. */
class ResponseParser {
  readonly #status: number;
  /** The head, until it is complete. */
  #head = "";
  /** Remaining bytes of the body. Undefined if it is chunked. */
  #left: number | undefined;
  #isBody = false;
  #tail = "";

  constructor(status = 0) {
    this.#status = status;
  }

  /**
   * Returns whether the response ends with these bytes.
   * @throws Error for another status
   */
  take(bytes: Buffer): boolean {
    if (this.#isBody) return this.#takeBody(bytes, 0);
    const before = this.#head.length;
    this.#head += bytes.toString("latin1");
    const end = this.#head.indexOf("\r\n\r\n");
    if (end < 0) return false;
    const head = this.#head.slice(0, end);
    if (!head.startsWith(`HTTP/1.1 ${this.#status}`)) throw new Error(`The response is ${head.split("\r\n")[0]}`);
    const [, length] = /^content-length: *(\d+)/im.exec(head) ?? [];
    this.#left = length === undefined ? undefined : Number(length);
    this.#isBody = true;
    return this.#takeBody(bytes, end + 4 - before);
  }

  #takeBody(bytes: Buffer, from: number): boolean {
    if (this.#left !== undefined) {
      this.#left -= bytes.length - from;
      return this.#left <= 0;
    }
    this.#tail = (this.#tail + bytes.toString("latin1", Math.max(from, bytes.length - LAST_CHUNK.length))).slice(
      -LAST_CHUNK.length,
    );
    return this.#tail === LAST_CHUNK;
  }
}
