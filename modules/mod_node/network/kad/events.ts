/** What is told of a search in the routing system, in the words of the reference (network section 7). */
import type { PeerInfo } from "@libp2p/interface";
import type { QueryEvent } from "@libp2p/kad-dht";
import type { PeerId } from "../../formats/peer_id.ts";
import { failures } from "../../util/errors.ts";
import { type Multiaddr, transportOf } from "../swarm/multiaddr.ts";

/** As numbered on the wire. */
export const eventTypes = {
  sendingQuery: 0,
  peerResponse: 1,
  finalPeer: 2,
  queryError: 3,
  provider: 4,
  value: 5,
  dialingPeer: 7,
} as const;

/** A peer, and addresses of it without its id. */
export interface PeerAddresses {
  readonly id: PeerId;
  readonly multiaddrs: readonly Multiaddr[];
}

export interface RoutingEvent {
  readonly type: (typeof eventTypes)[keyof typeof eventTypes];
  /** Whom it is about. */
  readonly id?: PeerId;
  readonly responses?: readonly PeerAddresses[];
  /** Of an error. */
  readonly text?: string;
  /** A record that was found. */
  readonly value?: Uint8Array;
}

export type RoutingEvents = AsyncGenerator<RoutingEvent, void, undefined>;

export type QueryKind = "closest" | "findPeer" | "findProviders" | "get" | "put" | "provide";

/** Nobody is in a table. */
export const NO_PEERS_TEXT = failures.ROUTING_TABLE_EMPTY;
export const NOT_FOUND_TEXT = "routing: not found";

export const queryError = (text: string, id?: PeerId): RoutingEvent => ({
  type: eventTypes.queryError,
  text,
  ...(id === undefined ? {} : { id }),
});

export const addressesOf = ({ id, multiaddrs }: PeerInfo): PeerAddresses => ({
  id,
  multiaddrs: [...new Map(multiaddrs.map(transportOf).map((address) => [address.toString(), address])).values()],
});

/** Messages that end a search, of which the reference tells nothing. */
const deliveries: readonly string[] = ["PUT_VALUE", "ADD_PROVIDER"];

/** What the reference tells of what the library does. */
export function* translate(deed: QueryKind, event: QueryEvent): Generator<RoutingEvent, void, undefined> {
  const { sendingQuery, peerResponse, finalPeer, provider, value, dialingPeer } = eventTypes;
  switch (event.name) {
    case "DIAL_PEER":
      yield { type: dialingPeer, id: event.peer };
      break;
    case "SEND_QUERY":
      if (!deliveries.includes(event.messageName)) yield { type: sendingQuery, id: event.to };
      break;
    case "PEER_RESPONSE": {
      const { from: id, record } = event;
      if (deliveries.includes(event.messageName)) {
        if (deed === "put" && record !== undefined) yield { type: value, id };
        break;
      }
      yield { type: peerResponse, id, responses: event.closer.map(addressesOf) };
      if (deed === "get" && record !== undefined) yield { type: value, id, value: record.value };
      break;
    }
    case "FINAL_PEER":
      if (deed === "closest") yield { type: finalPeer, id: event.peer.id };
      if (deed === "findPeer" && event.peer.multiaddrs.length > 0) {
        yield { type: finalPeer, responses: [addressesOf(event.peer)] };
      }
      break;
    case "PROVIDER":
      for (const peer of event.providers) yield { type: provider, responses: [addressesOf(peer)] };
      break;
    case "QUERY_ERROR":
      yield queryError(event.error.message, event.from);
      break;
  }
}
