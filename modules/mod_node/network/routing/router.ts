/** What answers questions of routing: a DHT, a router over HTTP, or several of them as one. */
import type { CID } from "multiformats/cid";
import type { PeerId } from "../../formats/peer_id.ts";
import type { RoutingEvents } from "../kad/events.ts";

/** How a question is asked. */
export interface Asking {
  readonly signal: AbortSignal;
  /** Results that are enough; all of them by default. */
  readonly count?: number | undefined;
  /**
   * False: routers over HTTP are left out. So it is with what others ask of this node, or two nodes that name each other
   * as routers would ask in circles.
   */
  readonly delegated?: boolean | undefined;
}

export interface RecordToPut {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
}

/** The events end with the signal, whose reason is then thrown; otherwise what is thrown is a NodeError. */
export type Ask<Q> = (question: Q, asking: Asking) => RoutingEvents;

/** It has the methods that it can be asked by. */
export interface Router {
  /** `provider` for each. Finding none is no failure. */
  readonly findProviders?: Ask<CID>;
  /** Ends with `finalPeer`; without it, or with the failure `routing: not found`, the peer is not known. */
  readonly findPeer?: Ask<PeerId>;
  /** `value` for each record of a key: all are valid, and none need be the best. */
  readonly search?: Ask<Uint8Array>;
  /** Throws where nobody has taken the record. */
  readonly put?: Ask<RecordToPut>;
  /** Announces this node as a provider. Throws where nobody was told. */
  readonly provide?: Ask<CID>;
  /** Whether `provide` would reach somebody now. */
  readonly canProvide?: () => boolean;
}

/** The methods, by the names that `Routing.Methods` has for them. */
export const methodNames = {
  "find-providers": "findProviders",
  "find-peers": "findPeer",
  "get-ipns": "search",
  "put-ipns": "put",
  provide: "provide",
} as const satisfies Readonly<Record<string, Exclude<keyof Router, "canProvide">>>;

export type MethodName = keyof typeof methodNames;
export type Method = (typeof methodNames)[MethodName];

export const methods: readonly Method[] = Object.values(methodNames);

/** The router with some of its methods. */
export function only(router: Router, wanted: readonly Method[]): Router {
  const kept = wanted.filter((method) => router[method] !== undefined).map((method) => [method, router[method]]);
  const { canProvide } = router;
  return { ...Object.fromEntries(kept), ...(wanted.includes("provide") && canProvide ? { canProvide } : {}) };
}
