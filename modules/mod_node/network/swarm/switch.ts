/** Switches a service of libp2p on and off while libp2p runs. */
import { start, stop } from "@libp2p/interface";
import { settledWithin } from "../../util/async/within.ts";

/** Milliseconds that a service may take to stop: routers that do not respond are not waited for. */
const STOP_TIMEOUT_MS = 1000;

export class Switch {
  readonly #make: () => object;
  #running: object | undefined;

  /** @param make called each time the service is switched on */
  constructor(make: () => object) {
    this.#make = make;
  }

  /**
   * Resolves when the service is on or off. With `restart`, a running service is created and
   * started again.
   */
  async set(isOn: boolean, { restart = false } = {}): Promise<void> {
    const previous = this.#running;
    if (previous !== undefined && (!isOn || restart)) {
      this.#running = undefined;
      await settledWithin(STOP_TIMEOUT_MS, Promise.resolve(stop(previous)));
    }
    if (!isOn || this.#running !== undefined) return;
    const made = this.#make();
    this.#running = made;
    await start(made);
  }
}
