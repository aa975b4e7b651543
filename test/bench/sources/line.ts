/** A line to a server with a limited rate, which all its connections share. */
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";

/** Bytes that pass at once. */
const BURST = 64 * 1024;
/** Maximum delay of a timer in milliseconds that is made up for. */
const MAX_LAG = 50;

export class LimitedLine implements Disposable {
  readonly #server: Server;
  readonly #bytesPerMs: number;
  /** When the line is free again: milliseconds of `performance.now`. */
  #freeAt = 0;
  readonly #sockets = new Set<Socket>();

  private constructor(to: number, bytesPerSecond: number) {
    this.#bytesPerMs = bytesPerSecond / 1000;
    this.#server = createServer((client) => {
      const server = connect(to, "127.0.0.1");
      this.#keep(client, server);
      client.pipe(server);
      void this.#carry(server, client);
    });
  }

  /** Limits the data from a server at a port of the loopback. Data to the server passes at once. */
  static async open(to: number, bytesPerSecond: number): Promise<LimitedLine> {
    const line = new LimitedLine(to, bytesPerSecond);
    line.#server.listen(0, "127.0.0.1");
    await once(line.#server, "listening");
    return line;
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #keep(...ends: readonly [Socket, Socket]): void {
    for (const [at, socket] of ends.entries()) {
      this.#sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        this.#sockets.delete(socket);
        ends[1 - at]?.destroy();
      });
    }
  }

  async #carry(from: Socket, to: Socket): Promise<void> {
    try {
      for await (const piece of from as AsyncIterable<Buffer>) {
        for (let at = 0; at < piece.length; at += BURST) {
          const part = piece.subarray(at, at + BURST);
          const now = performance.now();
          this.#freeAt = Math.max(this.#freeAt, now - MAX_LAG) + part.length / this.#bytesPerMs;
          if (this.#freeAt - now > 2) await pause(this.#freeAt - now);
          if (!to.write(part)) await once(to, "drain");
        }
      }
    } catch {
      // Either end has disconnected.
    }
    to.destroy();
  }
}
