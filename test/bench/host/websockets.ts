/** Websockets to a server that echoes messages. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";

const PAYLOAD = "hello, hello";
/** A text message, masked with zeros, as clients have to mask. */
const MESSAGE = Buffer.concat([Buffer.from([0x81, 0x80 | PAYLOAD.length, 0, 0, 0, 0]), Buffer.from(PAYLOAD)]);
/** A ping, which a server sends now and then, and the reply. */
const PING = 0x89;
const PING_BYTES = 2;
const PONG = Buffer.from([0x8a, 0x80, 0, 0, 0, 0]);
/** The same message from a server: two bytes of header and no mask. */
const ECHO_BYTES = 2 + PAYLOAD.length;

export class Echoes {
  readonly #all: readonly Echo[];

  private constructor(all: readonly Echo[]) {
    this.#all = all;
  }

  static async open(port: number, path: string, count: number): Promise<Echoes> {
    const all: Echo[] = [];
    // Opens a hundred at a time, because the queue of pending connections is limited.
    while (all.length < count) {
      const batch = Array.from({ length: Math.min(100, count - all.length) }, () => Echo.open(port, path));
      all.push(...(await Promise.all(batch)));
    }
    return new Echoes(all);
  }

  /**
   * Sends `count` messages in all. Each socket sends the next one as soon as the previous one is
   * back.
   */
  async ask(count: number): Promise<void> {
    let left = count;
    const work = async (echo: Echo) => {
      while (left > 0) {
        left -= 1;
        await echo.send();
      }
    };
    await Promise.all(this.#all.map(work));
  }

  close(): void {
    for (const echo of this.#all) echo.close();
  }
}

class Echo {
  readonly #socket: Socket;
  #missing = 0;
  #over: { resolve(): void; reject(error: Error): void } = { resolve() {}, reject() {} };

  private constructor(socket: Socket) {
    this.#socket = socket;
    const fail = () => this.#over.reject(new Error("The websocket was closed"));
    socket.on("error", fail).on("close", fail);
    socket.on("data", (bytes: Buffer) => {
      for (let at = 0; at < bytes.length; ) {
        if (bytes[at] === PING && this.#missing % ECHO_BYTES === 0) {
          socket.write(PONG);
          at += PING_BYTES;
          continue;
        }
        const taken = Math.min(this.#missing, bytes.length - at);
        if (taken === 0) this.#over.reject(new Error("The server sent back more than it received"));
        this.#missing -= taken;
        at += taken || bytes.length;
        if (this.#missing === 0) this.#over.resolve();
      }
    });
  }

  static async open(port: number, path: string): Promise<Echo> {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    await once(socket, "connect");
    socket.write(
      `GET ${path} HTTP/1.1\r\nHost: localhost:${port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
        `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${randomBytes(16).toString("base64")}\r\n\r\n`,
    );
    const [head] = (await once(socket, "data")) as [Buffer];
    if (!head.toString("latin1").startsWith("HTTP/1.1 101 ")) throw new Error(`${path} is no websocket`);
    return new Echo(socket);
  }

  send(): Promise<void> {
    this.#missing = ECHO_BYTES;
    return new Promise((resolve, reject) => {
      this.#over = { resolve, reject };
      this.#socket.write(MESSAGE);
    });
  }

  close(): void {
    this.#socket.destroy();
  }
}
