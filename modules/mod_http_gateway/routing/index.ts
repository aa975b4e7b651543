/**
 * Delegated routing, version 1. Clients ask this node who has a block, where a peer is, and for
 * IPNS records.
 */
import { parseCid, parsePeerId } from "modhost/node";
import { httpMethods } from "../../../core/http/index.ts";
import type { Handler, HttpEvent, HttpRequest, ResponseFields, RouteTable } from "../../../core/types.ts";
import { Refusal } from "../errors/refusal.ts";
import type { Gateway, GatewayDeps } from "../gateway.ts";
import type { GatewaySettings } from "../settings.ts";
import { listResponse } from "./lists.ts";
import { LOOK_UP_MS, LookUps } from "./look_ups.ts";
import { putRecord, recordResponse } from "./records.ts";

const READING = "GET, HEAD, OPTIONS";

interface Question {
  readonly methods: string;
  respond(parts: QuestionParts): Promise<ResponseFields>;
}

interface QuestionParts extends Pick<GatewayDeps, "node"> {
  /** The part of the path after the kind of the question. */
  readonly key: string;
  readonly request: HttpRequest;
  readonly settings: GatewaySettings;
  /** Aborts when the client disconnects or a time limit is reached. */
  readonly signal: AbortSignal;
}

/** By the path segment before the key. */
const questions: Readonly<Record<string, Question>> = {
  providers: {
    methods: READING,
    async respond({ node, key, request, settings, signal }) {
      const cid = read("CID", parseCid, key);
      return listResponse("Providers", new LookUps(node, signal).providers(cid), { request, settings });
    },
  },
  peers: {
    methods: READING,
    async respond({ node, key, request, settings, signal }) {
      const id = read("PeerID", parsePeerId, key);
      return listResponse("Peers", new LookUps(node, signal).peer(id), { request, settings });
    },
  },
  "dht/closest/peers": {
    methods: READING,
    async respond({ node, key, request, settings, signal }) {
      const { bytes } = /^(Qm|1)/.test(key)
        ? read("PeerID", parsePeerId, key).toMultihash()
        : read("CID", parseCid, key).multihash;
      const peers = await new LookUps(node, signal).closest(bytes);
      return listResponse("Peers", peers, { request, settings });
    },
  },
  ipns: {
    methods: `${READING}, PUT`,
    respond(parts) {
      return parts.request.method === "PUT" ? putRecord(parts) : recordResponse(parts);
    },
  },
};

/** Routes for all methods, so that unsupported ones are refused in one place. */
export function routingRoutes(gateway: Gateway, { node, settings: now }: GatewayDeps): RouteTable {
  const handler: Handler = (event: HttpEvent, rest = "") => {
    // While routing is off, the path behaves as if it did not exist.
    if (!now().routing) return undefined;
    const at = rest.lastIndexOf("/");
    const name = rest.slice(0, Math.max(at, 0));
    const question = Object.hasOwn(questions, name) ? questions[name] : undefined;
    return gateway.respondWith(event, question?.methods ?? READING, (settings) => {
      if (question === undefined) throw new Refusal(400, `routing v1 does not have ${event.request.path}`);
      const { request } = event;
      const signal = AbortSignal.any([request.signal, AbortSignal.timeout(LOOK_UP_MS)]);
      return question.respond({ node, key: rest.slice(at + 1), request, settings, signal });
    });
  };
  return Object.fromEntries(httpMethods.map((method) => [`${method} /routing/v1/*`, handler]));
}

/** @throws {Refusal} 400 */
function read<T>(what: string, parse: (text: string) => T, text: string): T {
  try {
    return parse(text);
  } catch (cause) {
    throw new Refusal(400, `unable to parse ${what} ${JSON.stringify(text)}: ${(cause as Error).message}`, { cause });
  }
}
