/**
 * Shares the event loop among websockets: many fast clients block it no longer than one of them.
 */
import type { Socket } from "node:net";

/**
 * Milliseconds in one turn of the event loop for messages of websockets. The rest waits for the
 * next turns.
 */
const MAX_TURN_MS = 10;

/** Messages between two looks at the clock, which costs as much as a tiny message itself. */
const MESSAGES_A_LOOK = 16;

/**
 * Limits the time for messages in each turn. One network read may contain ten thousand messages,
 * and Node reads up to 32 pieces of each connection in one turn. When the time is used up, further
 * pieces stay in their connections, which continue in the order in which their data arrived.
 */
export class WebsocketScheduler {
  readonly #waiting = new Set<Socket>();
  #since: number | undefined;
  #isSpent = false;
  #messages = 0;

  /** Whether the time of this turn is used up. It begins with the first call. */
  isSpent(): boolean {
    if (this.#isSpent) return true;
    const now = performance.now();
    if (this.#since !== undefined) {
      this.#isSpent = now - this.#since > MAX_TURN_MS;
      return this.#isSpent;
    }
    this.#since = now;
    setImmediate(() => this.#end());
    return false;
  }

  /** Like `isSpent`, for each of many messages: it looks at the clock only now and then. */
  isSpentAtMessage(): boolean {
    if (this.#since !== undefined && ++this.#messages % MESSAGES_A_LOOK !== 0) return this.#isSpent;
    return this.isSpent();
  }

  /** Resolves in a turn that has time left. */
  async next(): Promise<void> {
    while (this.isSpent()) await new Promise((resolve) => setImmediate(resolve));
  }

  /** Delivers data of the connection to its listeners only in turns that have time left. */
  share(socket: Socket): void {
    const { emit } = socket;
    socket.emit = (...call: [name: string | symbol, piece?: unknown]): boolean => {
      if (call[0] !== "data" || !this.isSpent()) return Reflect.apply(emit, socket, call);
      socket.pause();
      socket.unshift(call[1]);
      this.#waiting.add(socket);
      return true;
    };
    socket.once("close", () => this.#waiting.delete(socket));
  }

  #end(): void {
    this.#since = undefined;
    this.#isSpent = false;
    const [socket] = this.#waiting;
    if (socket === undefined) return;
    this.#waiting.delete(socket);
    // The connection is read before the next turn, so that turn's time begins here.
    this.isSpent();
    socket.resume();
  }
}
