/** A router that is queried over HTTP: delegated routing, version 1. */
import { peerIdEncoder } from "../../../formats/peer_id.ts";
import { readUpTo } from "../../../util/async/read_all.ts";
import { failure, NodeError } from "../../../util/errors.ts";
import { nameOfRecord, RECORD_PREFIX } from "../../ipns_record/keys.ts";
import { decodeRecord, MAX_RECORD_SIZE } from "../../ipns_record/record.ts";
import { eventTypes, type PeerAddresses, queryError, type RoutingEvents } from "../../kad/events.ts";
import { validate } from "../../kad/validators.ts";
import type { Router, RouterQuery } from "../router.ts";
import type { Endpoint } from "./endpoint.ts";
import { LIST_TYPES, listed, typeOf } from "./lists.ts";
import { bitswapFilter, peerFilter, peerOf, providerFilter, type RequestFilter } from "./records.ts";

const RECORD_TYPE = "application/vnd.ipfs.ipns-record";

/** Encodes names for URLs. */
const nameText = peerIdEncoder("base36");

/**
 * Creates a router without `provide`, for which no finished specification exists.
 *
 * @param usesGateways whether blocks are also fetched from gateways
 */
export function httpRouter(endpoint: Endpoint, usesGateways: () => boolean): Router {
  return {
    findProviders: delegatedQuery(async function* (cid, { signal }) {
      const wanted = usesGateways() ? providerFilter : bitswapFilter;
      for await (const provider of peers(endpoint, { path: `providers/${cid}`, member: "Providers", wanted }, signal)) {
        yield { type: eventTypes.provider, responses: [provider] };
      }
    }),
    findPeer: delegatedQuery(async function* (id, { signal }) {
      const path = `peers/${id.toCID()}`;
      for await (const peer of peers(endpoint, { path, member: "Peers", wanted: peerFilter }, signal)) {
        if (!peer.id.equals(id) || peer.multiaddrs.length === 0) continue;
        yield { type: eventTypes.finalPeer, responses: [peer] };
        return;
      }
    }),
    search: delegatedQuery(async function* (key, { signal }) {
      if (!isOfName(key)) return;
      const request = { headers: { accept: RECORD_TYPE }, signal };
      for await (const value of endpoint.query(pathOf(key), request, (response) => record(key, response))) {
        yield { type: eventTypes.value, value };
      }
    }),
    // Public keys are not sent separately, because records contain those that are needed.
    put: delegatedQuery(async function* ({ key, value }, { signal }) {
      if (!isOfName(key)) return;
      const request = { headers: { "content-type": RECORD_TYPE }, body: Uint8Array.from(value), signal };
      yield* endpoint.query(pathOf(key), { method: "PUT", ...request }, nothing);
    }),
  };
}

const isOfName = (key: Uint8Array): boolean =>
  Buffer.from(key.subarray(0, RECORD_PREFIX.length)).toString() === RECORD_PREFIX;

const pathOf = (key: Uint8Array): string => `ipns/${nameText(nameOfRecord(key))}`;

/**
 * Wraps a query so that it does nothing if HTTP routers are excluded, and reports a failure as an
 * event before throwing it.
 */
function delegatedQuery<Q>(ask: RouterQuery<Q>): RouterQuery<Q> {
  return async function* (request, options): RoutingEvents {
    if (options.delegated === false) return;
    try {
      yield* ask(request, options);
    } catch (error) {
      if (error instanceof NodeError) yield queryError(error.message);
      throw error;
    }
  };
}

interface List {
  readonly path: string;
  readonly member: "Providers" | "Peers";
  readonly wanted: RequestFilter;
}

async function* peers(
  endpoint: Endpoint,
  { path, member, wanted }: List,
  signal: AbortSignal,
): AsyncGenerator<PeerAddresses, void, undefined> {
  const request = { headers: { accept: LIST_TYPES }, signal };
  for await (const found of endpoint.query(`${path}?${wanted.query}`, request, (response) =>
    listed(response, member),
  )) {
    const peer = peerOf(found, wanted);
    if (peer !== undefined) yield peer;
  }
}

/**
 * Yields the record, if there is one, which only the content type of the response shows. @throws
 * NodeError for an invalid record
 */
async function* record(key: Uint8Array, response: Response): AsyncGenerator<Uint8Array, void, undefined> {
  const { body } = response;
  if (body === null) return;
  if (typeOf(response) !== RECORD_TYPE) return void (await body.cancel());
  const value = await readUpTo(body, MAX_RECORD_SIZE + 1);
  await validate(key, value);
  if (decodeRecord(value).signatureV2.length === 0)
    throw failure("RECORD_INVALID", { reason: "the record has no signature of version 2" });
  yield value;
}

/** Discards the body, because the status of the response suffices. */
async function nothing({ body }: Response): Promise<readonly never[]> {
  await body?.cancel();
  return [];
}
