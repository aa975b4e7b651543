/**
 * Time limits of a request to a peer: how long no byte may move, and how long the request may take
 * in total.
 */
import type { Duplex } from "node:stream";
import type { GatewaySettings } from "../settings.ts";

export type StreamToPeer = Duplex & {
  /** Number of bytes so far, in both directions. */
  readonly moved: number;
};

/**
 * Calls `late` when no byte has moved for `stallTime`, or when the request takes longer than
 * `totalTime`. Stalls are checked once per `stallTime`.
 */
export class Watch {
  /** Whether the client is the slow side. The host has its own limits for that. */
  isForClient: () => boolean = () => false;
  readonly #timers: NodeJS.Timeout[] = [];
  #stream: StreamToPeer | undefined;
  #moved = 0;

  constructor({ stallTime, totalTime }: Pick<GatewaySettings, "stallTime" | "totalTime">, late: () => void) {
    if (stallTime > 0) this.#timers.push(setInterval(() => this.#isMoving() || late(), stallTime));
    if (totalTime > 0) this.#timers.push(setTimeout(late, totalTime));
  }

  follow(stream: StreamToPeer): void {
    this.#stream = stream;
    stream.once("close", () => this.end());
  }

  end(): void {
    for (const timer of this.#timers) clearTimeout(timer);
  }

  #isMoving(): boolean {
    const moved = this.#stream?.moved ?? 0;
    const isMoving = moved !== this.#moved || this.isForClient();
    this.#moved = moved;
    return isMoving;
  }
}
