/**
 * A proxy between a client and a server of any protocol that fails like real networks, as a test
 * chooses.
 */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { resetSocket } from "#test/support/reset_socket.ts";

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
}

export class FaultyTcp implements AsyncDisposable {
  /** Delay of each piece in milliseconds, in each direction. */
  latency = 0;
  readonly #listener: Server;
  readonly #target: number;
  readonly #pairs = new Set<Pair>();
  #refuses = false;
  #hole: PromiseWithResolvers<void> | undefined;
  #lose: { readonly pattern: RegExp; readonly done: () => void } | undefined;

  private constructor(listener: Server, target: number) {
    this.#listener = listener;
    this.#target = target;
  }

  /** `target`: port of the server on the loopback. */
  static async start(target: number): Promise<FaultyTcp> {
    const listener = createServer({ pauseOnConnect: true }, (client) => proxy.#join(client));
    const proxy = new FaultyTcp(listener, target);
    listener.listen(0, "127.0.0.1");
    await once(listener, "listening");
    return proxy;
  }

  get port(): number {
    return (this.#listener.address() as AddressInfo).port;
  }

  get connections(): number {
    return this.#pairs.size;
  }

  /** Resets all connections. */
  cut(): void {
    for (const { client, server } of this.#pairs) {
      resetSocket(client);
      resetSocket(server);
    }
  }

  /** Resets all connections and new ones, until `restore`. */
  refuse(): void {
    this.#refuses = true;
    this.cut();
  }

  /** Holds back all data without closing connections, until `restore` delivers it. */
  swallow(): void {
    this.#hole ??= Promise.withResolvers();
  }

  restore(): void {
    this.#refuses = false;
    this.#hole?.resolve();
    this.#hole = undefined;
  }

  /**
   * Drops the next response that matches, and resets its connection. The server has done what the
   * response confirms. Resolves when the response is dropped.
   */
  loseResponse(pattern: RegExp): Promise<void> {
    return new Promise((done) => {
      this.#lose = { pattern, done };
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#listener, "close");
    this.#listener.close();
    this.refuse();
    this.#hole?.resolve();
    await closed;
  }

  #join(client: Socket): void {
    if (this.#refuses) return void resetSocket(client);
    const server = connect(this.#target, "127.0.0.1");
    const pair = { client, server };
    this.#pairs.add(pair);
    const reset = () => {
      resetSocket(client);
      resetSocket(server);
    };
    for (const socket of [client, server]) {
      socket.setNoDelay(true).on("error", reset);
      socket.on("close", () => client.destroyed && server.destroyed && this.#pairs.delete(pair));
    }
    this.#pump(client, server, () => false).catch(reset);
    this.#pump(server, client, (piece) => this.#isLost(pair, piece)).catch(reset);
  }

  async #pump(from: Socket, to: Socket, isLost: (piece: Buffer) => boolean): Promise<void> {
    for await (const piece of from as AsyncIterable<Buffer>) {
      if (this.latency > 0) await sleep(this.latency);
      while (this.#hole !== undefined) await this.#hole.promise;
      if (isLost(piece)) return;
      if (!to.write(piece) && !to.destroyed) await Promise.race([once(to, "drain"), once(to, "close")]);
    }
    to.end();
  }

  #isLost({ client, server }: Pair, piece: Buffer): boolean {
    const lose = this.#lose;
    if (lose === undefined || !lose.pattern.test(piece.toString("latin1"))) return false;
    this.#lose = undefined;
    resetSocket(client);
    resetSocket(server);
    lose.done();
    return true;
  }
}
