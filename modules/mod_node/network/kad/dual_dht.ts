/**
 * Combines the two DHTs by the rules of go-ipfs: searches use both, while records and provider
 * announcements go to the public one unless its routing table is empty.
 */
import type { CID } from "multiformats/cid";
import type { PeerId } from "../../formats/peer_id.ts";
import { merge } from "../../util/async/merge.ts";
import { failure, NodeError } from "../../util/errors.ts";
import type { Dht } from "./dht.ts";
import {
  eventTypes,
  NO_PEERS_TEXT,
  type PeerAddresses,
  queryError,
  type RoutingEvent,
  type RoutingEvents,
} from "./events.ts";
import { compare, validate } from "./validators.ts";

export interface DualDht {
  readonly wan: Dht;
  readonly lan: Dht;
}

/** Returns the DHT for records and announcements. */
export const activeDht = ({ wan, lan }: DualDht): Dht => (wan.size > 0 ? wan : lan);

const isEmpty = ({ wan, lan }: DualDht): boolean => wan.size === 0 && lan.size === 0;

/** Yields the events of both DHTs as they arrive. */
async function* both(dhts: DualDht, signal: AbortSignal, ask: (dht: Dht, signal: AbortSignal) => RoutingEvents) {
  const ending = new AbortController();
  const either = AbortSignal.any([signal, ending.signal]);
  yield* merge([ask(dhts.wan, either), ask(dhts.lan, either)], () => ending.abort());
}

/** Reports an error as an event, then throws it. */
export async function* failWith(error: NodeError): RoutingEvents {
  yield queryError(error.message);
  throw error;
}

/**
 * Finds a peer; ends when it is found. @throws NodeError if it is not found, after an event with
 * the same text
 */
export async function* findPeer(dhts: DualDht, id: PeerId, signal: AbortSignal): RoutingEvents {
  const isAlone = isEmpty(dhts);
  for await (const event of both(dhts, signal, (dht, own) => dht.findPeer(id, own))) {
    yield event;
    if (event.type === eventTypes.finalPeer) return;
  }
  yield* failWith(failure(isAlone ? "ROUTING_TABLE_EMPTY" : "ROUTING_NOT_FOUND"));
}

/**
 * Finds providers; ends after `count` providers, each reported once. Finding none is not an error.
 */
export async function* findProviders(dhts: DualDht, cid: CID, count: number, signal: AbortSignal): RoutingEvents {
  const found = new Set<string>();
  const isAlone = isEmpty(dhts);
  for await (const event of both(dhts, signal, (dht, own) => dht.findProviders(cid, own))) {
    if (event.type === eventTypes.provider) {
      const [{ id }] = event.responses as [PeerAddresses];
      if (found.has(id.toString())) continue;
      found.add(id.toString());
    }
    if (!isEmptyTableError(event)) yield event;
    if (found.size === count) return;
  }
  if (isAlone && found.size === 0) yield queryError(NO_PEERS_TEXT);
}

const isEmptyTableError = ({ type, id, text }: RoutingEvent): boolean =>
  type === eventTypes.queryError && id === undefined && text === NO_PEERS_TEXT;

/**
 * Finds the peers closest to a key. @throws NodeError if the routing table is empty, after an event
 * with the same text
 */
export async function* closestPeers(dhts: DualDht, key: Uint8Array, signal: AbortSignal): RoutingEvents {
  const dht = activeDht(dhts);
  const isAlone = dht.size === 0;
  yield* dht.closest(key, signal);
  if (isAlone) throw failure("ROUTING_TABLE_EMPTY");
}

export interface GetOptions {
  /**
   * Number of records after which the search ends, including the local one; 0 searches until all
   * peers were queried.
   */
  readonly count?: number;
}

/** Yields `value` events with records, each better than the previous ones. */
export async function* searchValue(
  dhts: DualDht,
  key: Uint8Array,
  signal: AbortSignal,
  { count = 0 }: GetOptions = {},
): RoutingEvents {
  let best = await dhts.lan.localValue(key);
  let found = 0;
  if (best !== undefined) {
    found += 1;
    yield { type: eventTypes.value, value: best };
    if (found === count) return;
  }
  for await (const event of both(dhts, signal, (dht, own) => dht.get(key, own))) {
    const { value } = event;
    if (value === undefined) {
      yield event;
      continue;
    }
    found += 1;
    if (best === undefined || compare(key, value, best) > 0) {
      best = value;
      yield { type: eventTypes.value, value };
    }
    if (found === count) return;
  }
}

/**
 * Stores a record locally and at the peers closest to its key.
 *
 * @throws NodeError for a record that is invalid or older than the stored one, and if the routing
 * table is empty; after an event with the same text
 */
export async function* putValue(dhts: DualDht, key: Uint8Array, value: Uint8Array, signal: AbortSignal): RoutingEvents {
  const dht = activeDht(dhts);
  const isAlone = dht.size === 0;
  try {
    await validate(key, value);
    yield* dht.put(key, value, signal);
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    yield* failWith(error);
  }
  if (isAlone) throw failure("ROUTING_TABLE_EMPTY");
}

/**
 * Announces this node as a provider.
 *
 * @throws NodeError if the routing table is empty, after an event with the same text
 */
export async function* provide(dhts: DualDht, cid: CID, signal: AbortSignal): RoutingEvents {
  const dht = activeDht(dhts);
  const isAlone = dht.size === 0;
  yield* dht.provide(cid, signal);
  if (isAlone) throw failure("ROUTING_TABLE_EMPTY");
}
