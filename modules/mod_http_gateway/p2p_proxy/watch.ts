/** The bounds of the gateway, for what a peer is asked: how long nothing may come or go, and how long the whole may take. */
import type { Duplex } from "node:stream";
import type { GatewaySettings } from "../settings.ts";

export type StreamToPeer = Duplex & {
  /** Bytes so far, in both directions. */
  readonly moved: number;
};

/** `late` is called when nothing has come or gone for `stallTime`, which is looked at as often, or the whole takes longer than `totalTime`. */
export class Watch {
  /** It is the client that is slow, which is the host's matter. */
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
