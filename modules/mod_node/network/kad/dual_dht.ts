/** Searches over both tables, by the rules of the reference (network section 7): which is asked, and what comes of it. */
import type { CID } from "multiformats/cid";
import type { PeerId } from "../../formats/peer_id.ts";
import { merge } from "../../util/async/merge.ts";
import { type FailureCode, failure, NodeError } from "../../util/errors.ts";
import type { Dht } from "./dht.ts";
import {
  eventTypes,
  NO_PEERS_TEXT,
  NOT_FOUND_TEXT,
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

/** The one that is told things: the public one as soon as anybody is in it. */
export const activeDht = ({ wan, lan }: DualDht): Dht => (wan.size > 0 ? wan : lan);

const isEmpty = ({ wan, lan }: DualDht): boolean => wan.size === 0 && lan.size === 0;

/** Both at once. */
async function* both(tables: DualDht, signal: AbortSignal, ask: (table: Dht, signal: AbortSignal) => RoutingEvents) {
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  yield* merge([ask(tables.wan, either), ask(tables.lan, either)], () => over.abort());
}

/** Told, then thrown. */
export async function* failWith(text: string, code?: FailureCode): RoutingEvents {
  yield queryError(text);
  throw new NodeError(text, code === undefined ? {} : { code });
}

/** Ends with the peer. @throws NodeError when it is not found, after an event that says so */
export async function* findPeer(tables: DualDht, id: PeerId, signal: AbortSignal): RoutingEvents {
  const nobody = isEmpty(tables);
  for await (const event of both(tables, signal, (table, own) => table.findPeer(id, own))) {
    yield event;
    if (event.type === eventTypes.finalPeer) return;
  }
  yield* nobody ? failWith(NO_PEERS_TEXT, "ROUTING_TABLE_EMPTY") : failWith(NOT_FOUND_TEXT);
}

/** Ends when `count` are found, each told once; finding none is no failure. */
export async function* findProviders(tables: DualDht, cid: CID, count: number, signal: AbortSignal): RoutingEvents {
  const found = new Set<string>();
  const nobody = isEmpty(tables);
  for await (const event of both(tables, signal, (table, own) => table.findProviders(cid, own))) {
    if (event.type === eventTypes.provider) {
      const [{ id }] = event.responses as [PeerAddresses];
      if (found.has(id.toString())) continue;
      found.add(id.toString());
    }
    if (!isLack(event)) yield event;
    if (found.size === count) return;
  }
  if (nobody && found.size === 0) yield queryError(NO_PEERS_TEXT);
}

const isLack = ({ type, id, text }: RoutingEvent): boolean =>
  type === eventTypes.queryError && id === undefined && text === NO_PEERS_TEXT;

/** The peers next to a key. @throws NodeError when there is nobody, after an event that says so */
export async function* closestPeers(tables: DualDht, key: Uint8Array, signal: AbortSignal): RoutingEvents {
  const table = activeDht(tables);
  const nobody = table.size === 0;
  yield* table.closest(key, signal);
  if (nobody) throw failure("ROUTING_TABLE_EMPTY");
}

export interface GetOptions {
  /** Ends when so many records were met, the one that is kept here among them; 0: when nobody is left to be asked. */
  readonly count?: number;
}

/** `value` events with records that are each better than all before. */
export async function* searchValue(
  tables: DualDht,
  key: Uint8Array,
  signal: AbortSignal,
  { count = 0 }: GetOptions = {},
): RoutingEvents {
  let best = await tables.lan.localValue(key);
  let met = 0;
  if (best !== undefined) {
    met += 1;
    yield { type: eventTypes.value, value: best };
    if (met === count) return;
  }
  for await (const event of both(tables, signal, (table, own) => table.get(key, own))) {
    const { value } = event;
    if (value === undefined) {
      yield event;
      continue;
    }
    met += 1;
    if (best === undefined || compare(key, value, best) > 0) {
      best = value;
      yield { type: eventTypes.value, value };
    }
    if (met === count) return;
  }
}

/** Ends with the best record. @throws NodeError when there is none, after an event that says so */
export async function* getValue(tables: DualDht, key: Uint8Array, signal: AbortSignal): RoutingEvents {
  let best: RoutingEvent | undefined;
  for await (const event of searchValue(tables, key, signal)) {
    if (event.value !== undefined) best = event;
    else if (event.type === eventTypes.peerResponse && event.id !== undefined) yield { type: event.type, id: event.id };
    else yield event;
  }
  if (best === undefined) yield* failWith(NOT_FOUND_TEXT);
  else yield best;
}

/**
 * Keeps a record here and gives it to the peers next to its key.
 *
 * @throws NodeError of a record that is not valid, or not the best, or that nobody has taken; after an event that says so
 */
export async function* putValue(
  tables: DualDht,
  key: Uint8Array,
  value: Uint8Array,
  signal: AbortSignal,
): RoutingEvents {
  const table = activeDht(tables);
  const nobody = table.size === 0;
  try {
    await validate(key, value);
    yield* table.put(key, value, signal);
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    yield* failWith(error.message, error.code);
  }
  if (nobody) throw failure("ROUTING_TABLE_EMPTY");
}

/** Tells the peers next to a block that it can be had here. @throws NodeError when there is nobody, after an event */
export async function* provide(tables: DualDht, cid: CID, signal: AbortSignal): RoutingEvents {
  const table = activeDht(tables);
  const nobody = table.size === 0;
  yield* table.provide(cid, signal);
  if (nobody) throw failure("ROUTING_TABLE_EMPTY");
}
