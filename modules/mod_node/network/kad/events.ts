/**
 * Translates events of DHT queries into those that the `dht` commands of the go-ipfs 0.9 RPC
 * report.
 */
import type { PeerInfo } from "@libp2p/interface";
import type { QueryEvent } from "@libp2p/kad-dht";
import type { PeerId } from "../../formats/peer_id.ts";
import { failures } from "../../util/errors.ts";
import { type Multiaddr, transportOf } from "../swarm/multiaddr.ts";

/** Numbers of the event types in the RPC. */
export const eventTypes = {
  sendingQuery: 0,
  peerResponse: 1,
  finalPeer: 2,
  queryError: 3,
  provider: 4,
  value: 5,
  dialingPeer: 7,
} as const;

/** A peer and its addresses, which do not contain its id. */
export interface PeerAddresses {
  readonly id: PeerId;
  readonly multiaddrs: readonly Multiaddr[];
  /** Protocols of a provider, if a router reports them: see `ProviderRecord`. */
  readonly protocols?: readonly string[];
}

export interface RoutingEvent {
  readonly type: (typeof eventTypes)[keyof typeof eventTypes];
  /** The peer that the event is about. */
  readonly id?: PeerId;
  readonly responses?: readonly PeerAddresses[];
  /** The text of an error. */
  readonly text?: string;
  /** The value of a record that was found. */
  readonly value?: Uint8Array;
}

export type RoutingEvents = AsyncGenerator<RoutingEvent, void, undefined>;

export type QueryKind = "closest" | "findPeer" | "findProviders" | "get" | "put" | "provide";

/** Error of a query while the routing table is empty. */
export const NO_PEERS_TEXT = failures.ROUTING_TABLE_EMPTY;

export const queryError = (text: string, id?: PeerId): RoutingEvent => ({
  type: eventTypes.queryError,
  text,
  ...(id === undefined ? {} : { id }),
});

export const addressesOf = ({ id, multiaddrs }: PeerInfo): PeerAddresses => ({
  id,
  multiaddrs: [...new Map(multiaddrs.map(transportOf).map((address) => [address.toString(), address])).values()],
});

/** Messages that follow a search and that go-ipfs does not report as queries. */
const STORE_MESSAGES: readonly string[] = ["PUT_VALUE", "ADD_PROVIDER"];

/** Yields the go-ipfs events for an event of the library. */
export function* translate(kind: QueryKind, event: QueryEvent): Generator<RoutingEvent, void, undefined> {
  const { sendingQuery, peerResponse, finalPeer, provider, value, dialingPeer } = eventTypes;
  switch (event.name) {
    case "DIAL_PEER":
      yield { type: dialingPeer, id: event.peer };
      break;
    case "SEND_QUERY":
      if (!STORE_MESSAGES.includes(event.messageName)) yield { type: sendingQuery, id: event.to };
      break;
    case "PEER_RESPONSE": {
      const { from: id, record } = event;
      if (STORE_MESSAGES.includes(event.messageName)) {
        if (kind === "put" && record !== undefined) yield { type: value, id };
        break;
      }
      yield { type: peerResponse, id, responses: event.closer.map(addressesOf) };
      if (kind === "get" && record !== undefined) yield { type: value, id, value: record.value };
      break;
    }
    case "FINAL_PEER":
      if (kind === "closest") yield { type: finalPeer, id: event.peer.id };
      if (kind === "findPeer" && event.peer.multiaddrs.length > 0) {
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
