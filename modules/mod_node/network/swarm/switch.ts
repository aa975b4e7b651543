/** A service of libp2p that is switched on and off while libp2p runs. */
import { start, stop } from "@libp2p/interface";
import { settledWithin } from "../../util/async/within.ts";

/** Milliseconds that a service may take to stop: routers that do not answer are not waited for. */
const STOP_TIMEOUT_MS = 1000;

export class Switch {
  readonly #make: () => object;
  #running: object | undefined;

  /** @param make called each time that it is switched on */
  constructor(make: () => object) {
    this.#make = make;
  }

  /** Resolves when it is so. With `anew`, what is on is made and started once more. */
  async set(isOn: boolean, { anew = false } = {}): Promise<void> {
    const former = this.#running;
    if (former !== undefined && (!isOn || anew)) {
      this.#running = undefined;
      await settledWithin(STOP_TIMEOUT_MS, Promise.resolve(stop(former)));
    }
    if (!isOn || this.#running !== undefined) return;
    const made = this.#make();
    this.#running = made;
    await start(made);
  }
}
