/** Limits how often peers may ask AutoNAT whether they are reachable (`AutoNAT.Throttle`). */
import type { AutoNATComponents } from "@libp2p/autonat";
import type { Libp2p, StreamHandler, StreamHandlerOptions, StreamMiddleware } from "@libp2p/interface";
import type { ConfigFile } from "../../storage/repo/config.ts";
import { isObject } from "../../storage/repo/json.ts";
import { parseDuration } from "../../util/go/duration.ts";

export const autoNatProtocol = "/libp2p/autonat/1.0.0";

interface ThrottleLimits {
  /** Maximum number of requests per interval, of all peers and of one peer; 0 for no limit. */
  readonly all: number;
  readonly peer: number;
  /** Length of the interval in milliseconds. */
  readonly interval: number;
}

const DEFAULT_LIMITS: ThrottleLimits = { all: 30, peer: 3, interval: 60_000 };

function throttleOf(config: Pick<ConfigFile, "value">): ThrottleLimits {
  const set = config.value("AutoNAT.Throttle");
  if (!isObject(set)) return DEFAULT_LIMITS;
  const interval = parseDuration(String(set.Interval || "0s"));
  return {
    all: Number(set.GlobalLimit ?? 0),
    peer: Number(set.PeerLimit ?? 0),
    interval: interval > 0 ? interval : DEFAULT_LIMITS.interval,
  };
}

/**
 * Runs the AutoNAT service for other peers according to the configuration, and follows its changes.
 */
export class AutoNatService {
  readonly #registrar: AutoNATComponents["registrar"];
  readonly #config: Pick<ConfigFile, "value">;
  #limit: StreamMiddleware;
  /** The handler to restore; set while the service is off. */
  #disabled: { readonly handler: StreamHandler; readonly options: StreamHandlerOptions } | undefined;

  /** @throws NodeError for an invalid interval */
  constructor(
    libp2p: Pick<Libp2p, "use">,
    registrar: AutoNATComponents["registrar"],
    config: Pick<ConfigFile, "value">,
  ) {
    this.#registrar = registrar;
    this.#config = config;
    this.#limit = throttle(throttleOf(config));
    // Requests that exceed the limits are reset.
    libp2p.use(autoNatProtocol, (stream, connection, next) => this.#limit(stream, connection, next));
  }

  /**
   * Must be called when libp2p has started, and after a change. @throws NodeError for an invalid
   * interval
   */
  async renew(): Promise<void> {
    this.#limit = throttle(throttleOf(this.#config));
    const isOn = this.#config.value("AutoNAT.ServiceMode") !== "disabled";
    const disabled = this.#disabled;
    if (!isOn && disabled === undefined) {
      this.#disabled = this.#registrar.getHandler(autoNatProtocol);
      await this.#registrar.unhandle(autoNatProtocol);
    } else if (isOn && disabled !== undefined) {
      this.#disabled = undefined;
      await this.#registrar.handle(autoNatProtocol, disabled.handler, disabled.options);
    }
  }
}

export function throttle({ all, peer, interval }: ThrottleLimits, now: () => number = Date.now): StreamMiddleware {
  let since = now();
  let total = 0;
  const byPeer = new Map<string, number>();
  return (stream, connection, next) => {
    if (stream.direction === "outbound") return next(stream, connection);
    if (now() - since >= interval) {
      since = now();
      total = 0;
      byPeer.clear();
    }
    const id = connection.remotePeer.toString();
    const own = (byPeer.get(id) ?? 0) + 1;
    if ((all > 0 && total >= all) || (peer > 0 && own > peer)) throw new Error("too many requests");
    total += 1;
    byPeer.set(id, own);
    return next(stream, connection);
  };
}
