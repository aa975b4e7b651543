/** Routers in memory, including HTTP routers that respond as a test defines. */
import type { CID } from "multiformats/cid";
import { parseCid } from "#node/formats/cid/text.ts";
import { type PeerId, parsePeerId } from "#node/formats/peer_id.ts";
import { eventTypes, type RoutingEvent, type RoutingEvents } from "#node/network/kad/events.ts";
import { Endpoint, type Fetch, parseRouterUrl } from "#node/network/routing/http/endpoint.ts";
import { httpRouter } from "#node/network/routing/http/http_router.ts";
import type { QueryOptions, Router } from "#node/network/routing/router.ts";
import { NodeLog } from "#node/util/log.ts";

export const cid: CID = parseCid("bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku");
export const peers: readonly PeerId[] = [
  parsePeerId("12D3KooWP6kJQ3e3vSd1FCxy3cGtJWoFE3vNWJCL1w158JcvUy5x"),
  parsePeerId("12D3KooWHdQBVjpdiqkMGedpB25NNgMEc6JykLjDxPRB65RD7eRU"),
  parsePeerId("12D3KooWMvzEG1hvWsZXmCmctA8mvK4uxWPrhLtk6xmmajyBGGAt"),
];
export const otherPeer = parsePeerId("12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA");

/** Timeout of everything that a test waits for. */
export const soon = (): QueryOptions => ({ signal: AbortSignal.timeout(60_000) });

/** Resolves to the events of a query, and the text of its error. */
export async function outcome(events: RoutingEvents | undefined) {
  const reported: RoutingEvent[] = [];
  try {
    for await (const event of events ?? []) reported.push(event);
    return { events: reported };
  } catch (error) {
    return { events: reported, failure: (error as Error).message };
  }
}

/** Returns the providers or peers that events name, with their addresses and protocols. */
export const namedIn = (events: readonly RoutingEvent[]) =>
  events
    .filter(({ type }) => type === eventTypes.provider || type === eventTypes.finalPeer)
    .flatMap(({ responses = [] }) => responses)
    .map(({ id, multiaddrs, protocols = [] }) => [id.toString(), multiaddrs.map(String), protocols]);

export const errorsIn = (events: readonly RoutingEvent[]) =>
  events.filter(({ type }) => type === eventTypes.queryError).map(({ text }) => text);

/** A request as a router receives it. */
export interface Got {
  readonly url: URL;
  readonly init: RequestInit & { readonly headers: Record<string, string> };
}

/** Creates an HTTP router with these responses, and returns the requests to it. */
export function fakeRouter(
  response: (got: Got) => Response | Promise<Response>,
  url = "https://router.example",
  usesGateways = true,
) {
  const requests: Got[] = [];
  const log = new NodeLog();
  const fetch: Fetch = async (text, init) => {
    init.signal?.throwIfAborted();
    const got = { url: new URL(text), init: init as Got["init"] };
    requests.push(got);
    return response(got);
  };
  return {
    requests,
    fetch,
    router: httpRouter(new Endpoint(parseRouterUrl(url), { log, fetch }), () => usesGateways) as Required<Router>,
  };
}

export const json = (value: unknown, init: ResponseInit = {}): Response =>
  new Response(JSON.stringify(value), { ...init, headers: { "content-type": "application/json", ...init.headers } });

/** Creates a stream of these pieces. `read` counts the pieces that were read. */
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
  return { state, response: new Response(ReadableStream.from(bytes), { headers: { "content-type": type } }) };
}

export const peerRecord = (id: PeerId | string, more: object = {}): object => ({
  Schema: "peer",
  ID: String(id),
  Addrs: ["/ip4/192.0.2.1/tcp/4001"],
  Protocols: ["transport-bitswap"],
  ...more,
});
