/** A line that is long: what goes through it comes out later, in either direction. */
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

export class LongLine implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(to: number, milliseconds: number) {
    this.#server = createServer({ noDelay: true }, (client) => {
      const server = connect({ port: to, host: "127.0.0.1", noDelay: true });
      this.#carry(client, server, milliseconds);
      this.#carry(server, client, milliseconds);
    });
  }

  /** To a port of loopback; `milliseconds` each way. */
  static async open(to: number, milliseconds: number): Promise<LongLine> {
    const line = new LongLine(to, milliseconds);
    line.#server.listen(0, "127.0.0.1");
    await once(line.#server, "listening");
    return line;
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Timers of one length go off in the order in which they were set. */
  #carry(from: Socket, to: Socket, milliseconds: number): void {
    this.#sockets.add(from);
    from.on("data", (piece) => void setTimeout(() => to.writable && to.write(piece), milliseconds));
    from.on("end", () => void setTimeout(() => to.end(), milliseconds));
    from.on("error", () => undefined);
    from.on("close", () => {
      this.#sockets.delete(from);
      setTimeout(() => to.destroy(), milliseconds);
    });
  }
}
