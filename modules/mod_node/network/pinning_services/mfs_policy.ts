/** Keeps the root of the files pinned at the services whose policy says so (network section 13). */
import type { CID } from "multiformats/cid";
import { parseDuration } from "../../util/go/duration.ts";
import { quote } from "../../util/go/text.ts";
import type { NodeLog } from "../../util/log.ts";
import type { RemotePins } from "./remote_pins.ts";
import { pinStatuses, type RemotePin } from "./responses.ts";
import type { KnownService } from "./services.ts";

export interface MfsPolicyDeps {
  readonly pins: RemotePins;
  readonly services: () => readonly (readonly [name: string, service: KnownService])[];
  /** The root as it is now, stored. */
  readonly root: (signal: AbortSignal) => Promise<CID>;
  /** Name of the pin where the policy has none. */
  readonly defaultName: string;
  readonly log: NodeLog;
}

/** Milliseconds from one look at the policies to the next. */
const lookEvery = 30_000;
const usualInterval = "5m";

/** What a service was last given. */
interface LastPin {
  readonly cid: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** The service as it was known then, as JSON: another endpoint or policy is another service. */
  readonly service: string;
}

export class MfsPolicy {
  readonly #deps: MfsPolicyDeps;
  readonly #lastPinned = new Map<string, LastPin>();
  readonly #stop = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;

  constructor(parts: MfsPolicyDeps) {
    this.#deps = parts;
  }

  start(): void {
    this.#timer = setTimeout(() => {
      this.#running = this.round(this.#stop.signal).finally(() => {
        if (!this.#stop.signal.aborted) this.start();
      });
    }, lookEvery).unref();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    clearTimeout(this.#timer);
    await this.#running;
  }

  /** Gives the root to every service that lacks it, to all at once. Never rejects: what fails is told in the log. */
  async round(signal: AbortSignal): Promise<void> {
    const meant = this.#deps.services().filter(([, { Policies }]) => Policies.MFS.Enable);
    if (meant.length === 0) return;
    try {
      const root = await this.#deps.root(signal);
      await Promise.all(meant.map(([name, service]) => this.#look(name, service, root, signal)));
    } catch (error) {
      if (!signal.aborted) this.#complain(`the root of the files cannot be read: ${(error as Error).message}`);
    }
  }

  async #look(name: string, service: KnownService, root: CID, signal: AbortSignal): Promise<void> {
    const now = JSON.stringify(service);
    const last = this.#lastPinned.get(name);
    try {
      const interval = parseDuration(service.Policies.MFS.RepinInterval || usualInterval);
      const isSame = last?.service === now;
      if (isSame && (last.cid === root.toString() || Date.now() - last.at < interval)) return;
      const at = await this.#pin(name, service.Policies.MFS.PinName || this.#deps.defaultName, root, signal);
      this.#lastPinned.set(name, { cid: root.toString(), at, service: now });
    } catch (error) {
      if (!signal.aborted) this.#complain(`${root} is not pinned at ${quote(name)}: ${(error as Error).message}`);
    }
  }

  /** A pin of that name is replaced. @returns since when the service has been asked for this root */
  async #pin(service: string, pinName: string, root: CID, signal: AbortSignal): Promise<number> {
    const { pins } = this.#deps;
    const client = pins.service(service);
    let former: RemotePin | undefined;
    for await (const pin of pins.list(client, { name: pinName, statuses: pinStatuses }, signal)) {
      former = pin;
      if (pin.status !== "failed" && pin.cid === root.toString()) return Date.parse(pin.created);
    }
    const wish = await pins.pinObject(root, pinName);
    const pin =
      former === undefined ? await client.add(wish, signal) : await client.replace(former.requestId, wish, signal);
    await pins.connectDelegates(pin);
    return Date.now();
  }

  #complain(message: string): void {
    this.#deps.log.write("remotepinning/mfs", "error", message);
  }
}
