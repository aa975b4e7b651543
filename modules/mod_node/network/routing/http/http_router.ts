/** A router that is asked over HTTP: delegated routing, version 1. */
import { peerIdEncoder } from "../../../formats/peer_id.ts";
import { readUpTo } from "../../../util/async/read_all.ts";
import { NodeError } from "../../../util/errors.ts";
import { nameOfRecord, RECORD_PREFIX } from "../../ipns_record/keys.ts";
import { decodeRecord, MAX_RECORD_SIZE } from "../../ipns_record/record.ts";
import { eventTypes, type PeerAddresses, queryError, type RoutingEvents } from "../../kad/events.ts";
import { validate } from "../../kad/validators.ts";
import type { Ask, Router } from "../router.ts";
import type { Endpoint } from "./endpoint.ts";
import { LIST_TYPES, listed, typeOf } from "./lists.ts";
import { type AskedFor, bitswapAsked, peerOf, peersAsked, providersAsked } from "./records.ts";

const RECORD_TYPE = "application/vnd.ipfs.ipns-record";

/** How names are written in URLs. */
const nameText = peerIdEncoder("base36");

/**
 * Without `provide`, which no finished specification has.
 *
 * @param usesGateways blocks are taken from gateways as well
 */
export function httpRouter(endpoint: Endpoint, usesGateways: () => boolean): Router {
  return {
    findProviders: asked(async function* (cid, { signal }) {
      const wanted = usesGateways() ? providersAsked : bitswapAsked;
      for await (const provider of peers(endpoint, { path: `providers/${cid}`, member: "Providers", wanted }, signal)) {
        yield { type: eventTypes.provider, responses: [provider] };
      }
    }),
    findPeer: asked(async function* (id, { signal }) {
      const path = `peers/${id.toCID()}`;
      for await (const peer of peers(endpoint, { path, member: "Peers", wanted: peersAsked }, signal)) {
        if (!peer.id.equals(id) || peer.multiaddrs.length === 0) continue;
        yield { type: eventTypes.finalPeer, responses: [peer] };
        return;
      }
    }),
    search: asked(async function* (key, { signal }) {
      if (!isOfName(key)) return;
      const question = { headers: { accept: RECORD_TYPE }, signal };
      for await (const value of endpoint.ask(pathOf(key), question, (answer) => record(key, answer))) {
        yield { type: eventTypes.value, value };
      }
    }),
    // Public keys go with the records that need them.
    put: asked(async function* ({ key, value }, { signal }) {
      if (!isOfName(key)) return;
      const question = { headers: { "content-type": RECORD_TYPE }, body: Uint8Array.from(value), signal };
      yield* endpoint.ask(pathOf(key), { method: "PUT", ...question }, nothing);
    }),
  };
}

const isOfName = (key: Uint8Array): boolean =>
  Buffer.from(key.subarray(0, RECORD_PREFIX.length)).toString() === RECORD_PREFIX;

const pathOf = (key: Uint8Array): string => `ipns/${nameText(nameOfRecord(key))}`;

/** Asks nobody where routers over HTTP are left out. A failure is an event first. */
function asked<Q>(ask: Ask<Q>): Ask<Q> {
  return async function* (question, asking): RoutingEvents {
    if (asking.delegated === false) return;
    try {
      yield* ask(question, asking);
    } catch (error) {
      if (error instanceof NodeError) yield queryError(error.message);
      throw error;
    }
  };
}

interface List {
  readonly path: string;
  readonly member: "Providers" | "Peers";
  readonly wanted: AskedFor;
}

async function* peers(
  endpoint: Endpoint,
  { path, member, wanted }: List,
  signal: AbortSignal,
): AsyncGenerator<PeerAddresses, void, undefined> {
  const question = { headers: { accept: LIST_TYPES }, signal };
  for await (const found of endpoint.ask(`${path}?${wanted.query}`, question, (answer) => listed(answer, member))) {
    const peer = peerOf(found, wanted);
    if (peer !== undefined) yield peer;
  }
}

/** The record, if there is one: only the type of the answer tells. @throws NodeError for one that is not valid */
async function* record(key: Uint8Array, answer: Response): AsyncGenerator<Uint8Array, void, undefined> {
  const { body } = answer;
  if (body === null) return;
  if (typeOf(answer) !== RECORD_TYPE) return void (await body.cancel());
  const value = await readUpTo(body, MAX_RECORD_SIZE + 1);
  await validate(key, value);
  if (decodeRecord(value).signatureV2.length === 0) throw new NodeError("the record has no signature of version 2");
  yield value;
}

/** Of an answer the status is enough. */
async function nothing({ body }: Response): Promise<readonly never[]> {
  await body?.cancel();
  return [];
}
