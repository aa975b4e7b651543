/** Searches over both tables, by the rules of the reference (network section 7): which is asked, and what comes of it. */
import type { CID } from "multiformats/cid";
import type { PeerId } from "../../formats/peer_id.ts";
import { merge } from "../../util/async/merge.ts";
import { NodeError } from "../../util/errors.ts";
import {
  eventTypes,
  failed,
  nobodyText,
  notFoundText,
  type PeerAddresses,
  type RoutingEvent,
  type RoutingEvents,
} from "./events.ts";
import type { Table } from "./routing_table.ts";
import { compare, validate } from "./validators.ts";

export interface Tables {
  readonly wan: Table;
  readonly lan: Table;
}

/** The one that is told things: the public one as soon as anybody is in it. */
export const active = ({ wan, lan }: Tables): Table => (wan.size > 0 ? wan : lan);

const isEmpty = ({ wan, lan }: Tables): boolean => wan.size === 0 && lan.size === 0;

/** Both at once. */
async function* both(tables: Tables, signal: AbortSignal, ask: (table: Table, signal: AbortSignal) => RoutingEvents) {
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  yield* merge([ask(tables.wan, either), ask(tables.lan, either)], () => over.abort());
}

/** Told, then thrown. */
export async function* refuse(text: string): RoutingEvents {
  yield failed(text);
  throw new NodeError(text);
}

/** Ends with the peer. @throws NodeError when it is not found, after an event that says so */
export async function* findPeer(tables: Tables, id: PeerId, signal: AbortSignal): RoutingEvents {
  const nobody = isEmpty(tables);
  for await (const event of both(tables, signal, (table, own) => table.findPeer(id, own))) {
    yield event;
    if (event.type === eventTypes.finalPeer) return;
  }
  yield* refuse(nobody ? nobodyText : notFoundText);
}

/** Ends when `count` are found, each told once; finding none is no failure. */
export async function* findProviders(tables: Tables, cid: CID, count: number, signal: AbortSignal): RoutingEvents {
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
  if (nobody && found.size === 0) yield failed(nobodyText);
}

const isLack = ({ type, id, text }: RoutingEvent): boolean =>
  type === eventTypes.queryError && id === undefined && text === nobodyText;

/** The peers next to a key. @throws NodeError when there is nobody, after an event that says so */
export async function* query(tables: Tables, key: Uint8Array, signal: AbortSignal): RoutingEvents {
  const table = active(tables);
  const nobody = table.size === 0;
  yield* table.closest(key, signal);
  if (nobody) throw new NodeError(nobodyText);
}

export interface GetOptions {
  /** Ends when so many records were met, the one that is kept here among them; 0: when nobody is left to be asked. */
  readonly count?: number;
}

/** `value` events with records that are each better than all before. */
export async function* search(
  tables: Tables,
  key: Uint8Array,
  signal: AbortSignal,
  { count = 0 }: GetOptions = {},
): RoutingEvents {
  let best = await tables.lan.kept(key);
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
export async function* get(tables: Tables, key: Uint8Array, signal: AbortSignal): RoutingEvents {
  let best: RoutingEvent | undefined;
  for await (const event of search(tables, key, signal)) {
    if (event.value !== undefined) best = event;
    else if (event.type === eventTypes.peerResponse && event.id !== undefined) yield { type: event.type, id: event.id };
    else yield event;
  }
  if (best === undefined) yield* refuse(notFoundText);
  else yield best;
}

/**
 * Keeps a record here and gives it to the peers next to its key.
 *
 * @throws NodeError of a record that is not valid, or not the best, or that nobody has taken; after an event that says so
 */
export async function* put(tables: Tables, key: Uint8Array, value: Uint8Array, signal: AbortSignal): RoutingEvents {
  const table = active(tables);
  const nobody = table.size === 0;
  try {
    await validate(key, value);
    yield* table.put(key, value, signal);
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    yield* refuse(error.message);
  }
  if (nobody) throw new NodeError(nobodyText);
}

/** Tells the peers next to a block that it can be had here. @throws NodeError when there is nobody, after an event */
export async function* provide(tables: Tables, cid: CID, signal: AbortSignal): RoutingEvents {
  const table = active(tables);
  const nobody = table.size === 0;
  yield* table.provide(cid, signal);
  if (nobody) throw new NodeError(nobodyText);
}
