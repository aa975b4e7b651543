/** The interface of routers: a DHT, an HTTP router, or several routers combined. */
import type { CID } from "multiformats/cid";
import type { PeerId } from "../../formats/peer_id.ts";
import type { RoutingEvents } from "../kad/events.ts";

/** Options of a query. */
export interface QueryOptions {
  readonly signal: AbortSignal;
  /** Number of results that suffices; all by default. */
  readonly count?: number | undefined;
  /**
   * If false, HTTP routers are not queried. That applies to requests of other nodes, because two
   * nodes that name each other as routers would otherwise query each other in circles.
   */
  readonly delegated?: boolean | undefined;
}

export interface RecordToPut {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
}

/**
 * Queries a router. The events end with the signal, whose reason is then thrown; all other errors
 * are NodeErrors.
 */
export type RouterQuery<Q> = (question: Q, options: QueryOptions) => RoutingEvents;

/** A router has the methods that it supports. */
export interface Router {
  /** Yields `provider` for each provider. Finding none is not an error. */
  readonly findProviders?: RouterQuery<CID>;
  /**
   * Ends with `finalPeer`. If it ends without it, or with the error `routing: not found`, the peer
   * is not known.
   */
  readonly findPeer?: RouterQuery<PeerId>;
  /** Yields `value` for each record of a key: all are valid, in any order. */
  readonly search?: RouterQuery<Uint8Array>;
  /** Stores a record. Throws if nobody has accepted the record. */
  readonly put?: RouterQuery<RecordToPut>;
  /** Announces this node as a provider. Throws if nobody was notified. */
  readonly provide?: RouterQuery<CID>;
  /** Whether `provide` would currently reach anybody. */
  readonly canProvide?: () => boolean;
}

/** The methods by their names in `Routing.Methods`. */
export const methodNames = {
  provide: "provide",
  "find-peers": "findPeer",
  "find-providers": "findProviders",
  "get-ipns": "search",
  "put-ipns": "put",
} as const satisfies Readonly<Record<string, Exclude<keyof Router, "canProvide">>>;

export type MethodName = keyof typeof methodNames;
export type Method = (typeof methodNames)[MethodName];

export const methods: readonly Method[] = Object.values(methodNames);

/** Returns the router with only some of its methods. */
export function only(router: Router, wanted: readonly Method[]): Router {
  const chosen = wanted.filter((method) => router[method] !== undefined).map((method) => [method, router[method]]);
  const { canProvide } = router;
  return { ...Object.fromEntries(chosen), ...(wanted.includes("provide") && canProvide ? { canProvide } : {}) };
}
