/**
 * Keeps the MFS root pinned at services whose policy says so
 * (`Pinning.RemoteServices.*.Policies.MFS`).
 */
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
  /** Resolves to the current MFS root after storing it. */
  readonly root: (signal: AbortSignal) => Promise<CID>;
  /** Name of the pin if the policy has none. */
  readonly defaultName: string;
  readonly log: NodeLog;
}

/** Milliseconds between two rounds. */
const ROUND_EVERY_MS = 30_000;
const DEFAULT_INTERVAL = "5m";

/** The last pin at a service. */
interface LastPin {
  readonly cid: string;
  /** When the pin was requested, in milliseconds since 1970. */
  readonly at: number;
  /**
   * The configuration of the service at that time, as JSON; a changed endpoint or policy causes a
   * new pin.
   */
  readonly service: string;
}

export class MfsPolicy {
  readonly #deps: MfsPolicyDeps;
  readonly #lastPinned = new Map<string, LastPin>();
  readonly #stop = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;

  constructor(deps: MfsPolicyDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#timer = setTimeout(() => {
      this.#running = this.round(this.#stop.signal).finally(() => {
        if (!this.#stop.signal.aborted) this.start();
      });
    }, ROUND_EVERY_MS).unref();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    clearTimeout(this.#timer);
    await this.#running;
  }

  /**
   * Pins the root at all services that lack it, concurrently. Never rejects: failures are logged.
   */
  async round(signal: AbortSignal): Promise<void> {
    const enabled = this.#deps.services().filter(([, { Policies }]) => Policies.MFS.Enable);
    if (enabled.length === 0) return;
    try {
      const root = await this.#deps.root(signal);
      await Promise.all(enabled.map(([name, service]) => this.#look(name, service, root, signal)));
    } catch (error) {
      if (!signal.aborted) this.#logError(`cannot read the root of the files: ${(error as Error).message}`);
    }
  }

  async #look(name: string, service: KnownService, root: CID, signal: AbortSignal): Promise<void> {
    const now = JSON.stringify(service);
    const last = this.#lastPinned.get(name);
    try {
      const interval = parseDuration(service.Policies.MFS.RepinInterval || DEFAULT_INTERVAL);
      const isSame = last?.service === now;
      if (isSame && (last.cid === root.toString() || Date.now() - last.at < interval)) return;
      const at = await this.#pin(name, service.Policies.MFS.PinName || this.#deps.defaultName, root, signal);
      this.#lastPinned.set(name, { cid: root.toString(), at, service: now });
    } catch (error) {
      if (!signal.aborted) this.#logError(`cannot pin ${root} at ${quote(name)}: ${(error as Error).message}`);
    }
  }

  /**
   * Replaces the pin of that name. @returns when the service was asked for this root, in
   * milliseconds since 1970
   */
  async #pin(service: string, pinName: string, root: CID, signal: AbortSignal): Promise<number> {
    const { pins } = this.#deps;
    const client = pins.service(service);
    let previous: RemotePin | undefined;
    for await (const pin of pins.list(client, { name: pinName, statuses: pinStatuses }, signal)) {
      previous = pin;
      if (pin.status !== "failed" && pin.cid === root.toString()) return Date.parse(pin.created);
    }
    const object = await pins.pinObject(root, pinName);
    const pin =
      previous === undefined
        ? await client.add(object, signal)
        : await client.replace(previous.requestId, object, signal);
    await pins.connectDelegates(pin);
    return Date.now();
  }

  #logError(message: string): void {
    this.#deps.log.write("remotepinning/mfs", "error", message);
  }
}
