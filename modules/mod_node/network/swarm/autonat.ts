/** How often peers may ask AutoNAT whether they can be reached (`AutoNAT.Throttle`). */
import type { AutoNATComponents } from "@libp2p/autonat";
import type { Libp2p, StreamHandler, StreamHandlerOptions, StreamMiddleware } from "@libp2p/interface";
import type { ConfigFile } from "../../storage/repo/config.ts";
import { isObject } from "../../storage/repo/json.ts";
import { parseDuration } from "../../util/go/duration.ts";

export const autoNatProtocol = "/libp2p/autonat/1.0.0";

interface ThrottleLimits {
  /** Requests in an interval, of all peers and of one; 0 for no limit. */
  readonly all: number;
  readonly peer: number;
  /** Milliseconds. */
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

/** Tells others whether they can be reached, as the configuration says, also after it has changed. */
export class AutoNatService {
  readonly #registrar: AutoNATComponents["registrar"];
  readonly #config: Pick<ConfigFile, "value">;
  #limit: StreamMiddleware;
  /** While nobody is answered: how it was. */
  #former: { readonly handler: StreamHandler; readonly options: StreamHandlerOptions } | undefined;

  /** @throws NodeError for an invalid interval */
  constructor(
    libp2p: Pick<Libp2p, "use">,
    registrar: AutoNATComponents["registrar"],
    config: Pick<ConfigFile, "value">,
  ) {
    this.#registrar = registrar;
    this.#config = config;
    this.#limit = throttle(throttleOf(config));
    // Requests beyond the limits are reset.
    libp2p.use(autoNatProtocol, (stream, connection, next) => this.#limit(stream, connection, next));
  }

  /** To be called when libp2p has started, and after a change. @throws NodeError for an invalid interval */
  async renew(): Promise<void> {
    this.#limit = throttle(throttleOf(this.#config));
    const isOn = this.#config.value("AutoNAT.ServiceMode") !== "disabled";
    const former = this.#former;
    if (!isOn && former === undefined) {
      this.#former = this.#registrar.getHandler(autoNatProtocol);
      await this.#registrar.unhandle(autoNatProtocol);
    } else if (isOn && former !== undefined) {
      this.#former = undefined;
      await this.#registrar.handle(autoNatProtocol, former.handler, former.options);
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
