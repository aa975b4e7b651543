/** Delegated routing, version 1: others ask this node who has a block, where a peer is, and for records of names. */
import { parseCid, parsePeerId } from "modhost/node";
import { httpMethods } from "../../../core/http/index.ts";
import type { Handler, HttpEvent, HttpRequest, ResponseFields, RouteTable } from "../../../core/types.ts";
import { Refusal } from "../errors/refusal.ts";
import type { Gateway, GatewayDeps } from "../gateway.ts";
import type { GatewaySettings } from "../settings.ts";
import { listAnswer } from "./lists.ts";
import { LOOK_UP_MS, LookUps } from "./look_ups.ts";
import { putRecord, recordAnswer } from "./records.ts";

const READING = "GET, HEAD, OPTIONS";

interface Question {
  readonly methods: string;
  answer(parts: QuestionParts): Promise<ResponseFields>;
}

interface QuestionParts extends Pick<GatewayDeps, "node"> {
  /** What follows the question in the path. */
  readonly key: string;
  readonly request: HttpRequest;
  readonly settings: GatewaySettings;
  /** Aborts when nobody waits any more, and when it takes too long. */
  readonly signal: AbortSignal;
}

/** By what stands before the key. */
const questions: Readonly<Record<string, Question>> = {
  providers: {
    methods: READING,
    async answer({ node, key, request, settings, signal }) {
      const cid = read("CID", parseCid, key);
      return listAnswer("Providers", new LookUps(node, signal).providers(cid), { request, settings });
    },
  },
  peers: {
    methods: READING,
    async answer({ node, key, request, settings, signal }) {
      const id = read("PeerID", parsePeerId, key);
      return listAnswer("Peers", new LookUps(node, signal).peer(id), { request, settings });
    },
  },
  "dht/closest/peers": {
    methods: READING,
    async answer({ node, key, request, settings, signal }) {
      const { bytes } = /^(Qm|1)/.test(key)
        ? read("PeerID", parsePeerId, key).toMultihash()
        : read("CID", parseCid, key).multihash;
      const peers = await new LookUps(node, signal).closest(bytes);
      return listAnswer("Peers", peers, { request, settings });
    },
  },
  ipns: {
    methods: `${READING}, PUT`,
    answer(parts) {
      return parts.request.method === "PUT" ? putRecord(parts) : recordAnswer(parts);
    },
  },
};

/** All methods, so that what is not there is refused in one place. */
export function routingRoutes(gateway: Gateway, { node, settings: now }: GatewayDeps): RouteTable {
  const handler: Handler = (event: HttpEvent, rest = "") => {
    // As if nothing were here.
    if (!now().routing) return undefined;
    const at = rest.lastIndexOf("/");
    const name = rest.slice(0, Math.max(at, 0));
    const question = Object.hasOwn(questions, name) ? questions[name] : undefined;
    return gateway.answerBy(event, question?.methods ?? READING, (settings) => {
      if (question === undefined) throw new Refusal(400, `There is no ${event.request.path} in routing v1`);
      const { request } = event;
      const signal = AbortSignal.any([request.signal, AbortSignal.timeout(LOOK_UP_MS)]);
      return question.answer({ node, key: rest.slice(at + 1), request, settings, signal });
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
