/**
 * An HTTP client that costs little CPU: a full client needs as much for each piece as the sender.
 */
import { connect, type Socket } from "node:net";

export interface Get {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Minimum number of bytes in the response. */
  readonly bytes: number;
}

const RECEIVE_BYTES = 256 * 1024;

/**
 * Sends the requests over `atOnce` connections at a time. Rejects at the first response that is
 * incomplete.
 */
export async function getAll(url: string, requests: Iterable<Get>, atOnce: number): Promise<void> {
  const waiting = requests[Symbol.iterator]();
  const connections = Array.from({ length: atOnce }, () => new Connection(new URL(url)));
  try {
    await Promise.all(connections.map((connection) => connection.getEach(waiting)));
  } finally {
    for (const connection of connections) connection.close();
  }
}

/** A kept-alive connection with one request at a time. */
class Connection {
  readonly #host: string;
  readonly #socket: Socket;
  readonly #buffer = Buffer.allocUnsafe(RECEIVE_BYTES);
  #response = new ResponseParser();
  #over: { resolve(): void; reject(error: Error): void } = { resolve() {}, reject() {} };

  constructor({ hostname, port, host }: URL) {
    this.#host = host;
    const callback = (length: number): boolean => {
      if (this.#response.take(this.#buffer.subarray(0, length))) this.#over.resolve();
      return true;
    };
    const onread = { buffer: this.#buffer, callback };
    this.#socket = connect({ host: hostname, port: Number(port), noDelay: true, onread });
    this.#socket.on("error", (error) => this.#over.reject(error));
    this.#socket.on("close", () => this.#over.reject(new Error("The connection was closed within a response")));
  }

  async getEach(requests: Iterator<Get>): Promise<void> {
    for (let next = requests.next(); next.done !== true; next = requests.next()) await this.#get(next.value);
  }

  close(): void {
    this.#socket.destroy();
  }

  async #get({ path, headers = {}, bytes }: Get): Promise<void> {
    this.#response = new ResponseParser();
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    await new Promise<void>((resolve, reject) => {
      this.#over = { resolve, reject };
      this.#socket.write(`GET ${path} HTTP/1.1\r\nhost: ${this.#host}\r\n${lines.join("")}\r\n`);
    });
    const { status, length } = this.#response;
    const wanted = headers.range === undefined ? 200 : 206;
    if (status === wanted && length >= bytes) return;
    throw new Error(`${path}: got status ${status} with ${length} bytes, and not ${wanted} with ${bytes}`);
  }
}

/** Parses a response as it arrives. It stores only the status and the length. */
class ResponseParser {
  status = 0;
  /** Bytes of the body so far. */
  length = 0;
  #part: "head" | "body" | "chunks" | "trailers" = "head";
  /** Remaining bytes of the body, or of the current chunk. */
  #left = 0;
  #isChunked = false;
  #line = "";

  /** Returns whether the response ends with these bytes. */
  take(bytes: Buffer): boolean {
    for (let at = 0; at < bytes.length; ) {
      if (this.#left > 0 && this.#part !== "head") {
        const taken = Math.min(this.#left, bytes.length - at);
        this.#left -= taken;
        this.length += taken;
        at += taken;
        if (this.#left === 0 && this.#part === "body") return true;
        continue;
      }
      const end = bytes.indexOf("\n", at);
      this.#line += bytes.toString("latin1", at, end < 0 ? bytes.length : end);
      if (end < 0) return false;
      at = end + 1;
      const line = this.#line.trimEnd();
      this.#line = "";
      if (this.#isLast(line)) return true;
    }
    return false;
  }

  /**
   * Reads a line of the head or of the chunk framing. Returns whether it is the last of the
   * response.
   */
  #isLast(line: string): boolean {
    if (this.#part === "trailers") return line === "";
    if (this.#part === "chunks") {
      // An empty line ends each chunk.
      if (line === "") return false;
      this.#left = Number.parseInt(line, 16);
      if (this.#left === 0) this.#part = "trailers";
      return false;
    }
    if (line !== "") {
      this.#readHead(line);
      return false;
    }
    this.#part = this.#isChunked ? "chunks" : "body";
    return !this.#isChunked && this.#left === 0;
  }

  #readHead(line: string): void {
    if (this.status === 0) this.status = Number(line.split(" ")[1]);
    else if (/^content-length:/i.test(line)) this.#left = Number(line.slice(line.indexOf(":") + 1));
    else if (/^transfer-encoding: *chunked/i.test(line)) this.#isChunked = true;
  }
}
