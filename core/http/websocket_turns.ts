/** Websockets share the event loop: many clients that send as fast as they can hold it no longer than one of them. */
import type { Socket } from "node:net";

/** Milliseconds of one turn of the event loop that messages of websockets are worked on; the rest comes in the next ones. */
const MAX_TURN_MS = 10;

/** Messages from one look at the clock to the next: it costs as much as a tiny message itself. */
const MESSAGES_A_LOOK = 16;

/**
 * One piece of the network may hold ten thousand messages, and of each connection Node reads up to 32 pieces in one turn.
 * When a turn has taken its time, further pieces stay where they are; connections go on in the order in which they came.
 */
export class WebsocketTurns {
  readonly #waiting = new Set<Socket>();
  #since: number | undefined;
  #isSpent = false;
  #messages = 0;

  /** Whether this turn has taken its time, which begins with the first who asks. */
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

  /** The same for one message of many, which looks at the clock now and then. */
  isSpentAtMessage(): boolean {
    if (this.#since !== undefined && ++this.#messages % MESSAGES_A_LOOK !== 0) return this.#isSpent;
    return this.isSpent();
  }

  /** Resolves in a turn that has time left. */
  async next(): Promise<void> {
    while (this.isSpent()) await new Promise((resolve) => setImmediate(resolve));
  }

  /** What comes on the connection is given to its listeners in turns that have time left. */
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
    // It is read before the next turn, whose time begins here.
    this.isSpent();
    socket.resume();
  }
}
