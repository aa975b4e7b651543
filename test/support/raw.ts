/**
 * Exchanges raw bytes with a port, for requests that no HTTP client would send. Every wait has a
 * timeout.
 */
import { once } from "node:events";
import { connect as connectPlain, type Socket } from "node:net";
import { connect as connectTls, createSecureContext } from "node:tls";

export interface RawOptions {
  readonly tls?: boolean;
  /** Timeout of each wait in milliseconds. Default 5,000. */
  readonly timeout?: number;
}

/**
 * All clients share this context: each one takes a megabyte of native memory, and time of the
 * garbage collection.
 */
export const clientContext = createSecureContext();

const maxLength = 1024 * 1024;

/** A connection that collects everything it receives as Latin-1 text. */
export class RawConnection {
  readonly socket: Socket;
  /** The first megabyte of received data. */
  text = "";
  /** The server has ended or reset the connection. */
  closed = false;
  readonly #timeout: number;

  private constructor(socket: Socket, timeout: number) {
    this.socket = socket;
    this.#timeout = timeout;
    socket.setEncoding("latin1");
    socket.on("data", (piece: string) => {
      if (this.text.length < maxLength) this.text += piece;
      socket.emit("progress");
    });
    const over = () => {
      this.closed = true;
      socket.emit("progress");
    };
    socket.on("error", over).on("end", over).on("close", over);
  }

  static async open(port: number, { tls = false, timeout = 60_000 }: RawOptions = {}): Promise<RawConnection> {
    const socket = tls
      ? connectTls({
          port,
          host: "127.0.0.1",
          rejectUnauthorized: false,
          ALPNProtocols: ["http/1.1"],
          secureContext: clientContext,
        })
      : connectPlain({ port, host: "127.0.0.1", noDelay: true });
    await once(socket, tls ? "secureConnect" : "connect");
    return new RawConnection(socket, timeout);
  }

  write(bytes: string | Uint8Array): void {
    if (this.socket.destroyed || this.socket.writableEnded) return;
    if (typeof bytes === "string") this.socket.write(bytes, "latin1");
    else this.socket.write(bytes);
  }

  /**
   * Resolves when the received text matches. Rejects if the server closes first or after the
   * timeout.
   */
  async until(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(this.text);
      if (found !== null) return found;
      if (this.closed)
        throw new Error(`The connection ended before ${pattern}; received: ${JSON.stringify(this.text)}`);
      await this.#progress(`${pattern}`);
    }
  }

  /** Resolves with everything received when the server has closed. Rejects after the timeout. */
  async end(): Promise<string> {
    while (!this.closed) await this.#progress("the end of the connection");
    return this.text;
  }

  destroy(): void {
    this.socket.destroy();
  }

  async #progress(awaited: string): Promise<void> {
    try {
      await once(this.socket, "progress", { signal: AbortSignal.timeout(this.#timeout) });
    } catch {
      throw new Error(
        `Waited ${this.#timeout} ms for ${awaited}; received: ${JSON.stringify(this.text.slice(0, 2000))}`,
      );
    }
  }

  [Symbol.dispose](): void {
    this.destroy();
  }
}

/**
 * Sends the pieces and returns everything received until the server closes. Rejects after the
 * timeout.
 */
export async function rawExchange(
  port: number,
  pieces: string | readonly string[],
  options?: RawOptions,
): Promise<string> {
  using connection = await RawConnection.open(port, options);
  for (const piece of typeof pieces === "string" ? [pieces] : pieces) connection.write(piece);
  return await connection.end();
}
