/** Routers in memory: those of other makes, and ones over HTTP that give what a test says. */
import { generateKeyPair } from "@libp2p/crypto/keys";
import { peerIdFromPrivateKey } from "@libp2p/peer-id";
import type { CID } from "multiformats/cid";
import { parseCid } from "#node/formats/cid/text.ts";
import { type PeerId, parsePeerId } from "#node/formats/peer_id.ts";
import { eventTypes, type RoutingEvent, type RoutingEvents } from "#node/network/kad/events.ts";
import { Endpoint, type Fetch, parseRouterUrl } from "#node/network/routing/http/endpoint.ts";
import { httpRouter } from "#node/network/routing/http/http_router.ts";
import type { Asking, Router } from "#node/network/routing/router.ts";
import { NodeLog } from "#node/util/log.ts";

export const cid: CID = parseCid("bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku");
export const peers: readonly PeerId[] = await Promise.all(
  Array.from({ length: 3 }, async () => peerIdFromPrivateKey(await generateKeyPair("Ed25519"))),
);
export const otherPeer = parsePeerId("12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA");

/** So long may anything take that a test waits for. */
export const soon = (): Asking => ({ signal: AbortSignal.timeout(60_000) });

/** What came of a question: its events, and the text with which it failed. */
export async function outcome(events: RoutingEvents | undefined) {
  const told: RoutingEvent[] = [];
  try {
    for await (const event of events ?? []) told.push(event);
    return { events: told };
  } catch (error) {
    return { events: told, failure: (error as Error).message };
  }
}

/** The providers or peers that events name, with their addresses and protocols. */
export const namedIn = (events: readonly RoutingEvent[]) =>
  events
    .filter(({ type }) => type === eventTypes.provider || type === eventTypes.finalPeer)
    .flatMap(({ responses = [] }) => responses)
    .map(({ id, multiaddrs, protocols = [] }) => [id.toString(), multiaddrs.map(String), protocols]);

export const errorsIn = (events: readonly RoutingEvent[]) =>
  events.filter(({ type }) => type === eventTypes.queryError).map(({ text }) => text);

/** A request as a router gets it. */
export interface Got {
  readonly url: URL;
  readonly init: RequestInit & { readonly headers: Record<string, string> };
}

/** A router over HTTP that answers so, and what it was asked. */
export function fakeRouter(
  answer: (got: Got) => Response | Promise<Response>,
  url = "https://router.example",
  usesGateways = true,
) {
  const asked: Got[] = [];
  const log = new NodeLog();
  const fetch: Fetch = async (text, init) => {
    init.signal?.throwIfAborted();
    const got = { url: new URL(text), init: init as Got["init"] };
    asked.push(got);
    return answer(got);
  };
  return {
    asked,
    fetch,
    router: httpRouter(new Endpoint(parseRouterUrl(url), { log, fetch }), () => usesGateways) as Required<Router>,
  };
}

export const json = (value: unknown, init: ResponseInit = {}): Response =>
  new Response(JSON.stringify(value), { ...init, headers: { "content-type": "application/json", ...init.headers } });

/** A stream of pieces as they are. `read` counts those that were taken. */
export function streamed(pieces: Iterable<string> | AsyncIterable<string>, type = "application/x-ndjson") {
  const state = { read: 0, isOver: false };
  const bytes = (async function* () {
    try {
      for await (const piece of pieces) {
        state.read += 1;
        yield Buffer.from(piece);
      }
    } finally {
      state.isOver = true;
    }
  })();
  return { state, answer: new Response(ReadableStream.from(bytes), { headers: { "content-type": type } }) };
}

export const peerRecord = (id: PeerId | string, more: object = {}): object => ({
  Schema: "peer",
  ID: String(id),
  Addrs: ["/ip4/192.0.2.1/tcp/4001"],
  Protocols: ["transport-bitswap"],
  ...more,
});
