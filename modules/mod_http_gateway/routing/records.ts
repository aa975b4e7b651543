/** Serves records of names to anybody, and accepts signed records from anybody. */
import { NodeError, type NodeModule, parseCid, parsePeerId } from "modhost/node";
import type { HttpRequest, ResponseFields } from "../../../core/types.ts";
import { Refusal, tooLate } from "../errors/refusal.ts";
import { conditionalResponse } from "../headers/conditions.ts";
import { formatTypes } from "../request/format.ts";
import { keyText } from "../request/path.ts";
import { recordTag, secondsOf, secondsUntil } from "../responses/record.ts";
import type { GatewaySettings } from "../settings.ts";
import { NOTHING_FOUND } from "./lists.ts";
import { LOOK_UP_MS } from "./look_ups.ts";

const RECORD_TYPE = formatTypes["ipns-record"];
/** Maximum size of a record in bytes, as implementations accept it. */
const MAX_RECORD_SIZE = 10 * 1024;
/** Seconds for which a record without a TTL is cached. */
const DEFAULT_TTL = 60;

interface RecordRequest {
  readonly node: NodeModule;
  readonly key: string;
  readonly request: HttpRequest;
  readonly settings: Pick<GatewaySettings, "headers">;
  /** Aborts when the client disconnects or a time limit is reached. */
  readonly signal: AbortSignal;
}

/**
 * Responds with the record. If there is none, responds with 200 and a line of text; clients only
 * see the difference in the type (IPIP-513). @throws {Refusal}
 */
export async function recordResponse({ node, key, request, settings }: RecordRequest): Promise<ResponseFields> {
  const id = nameIn(key);
  const accept = request.header("accept") ?? "*/*";
  if (!accept.includes(RECORD_TYPE) && !accept.includes("*/*")) {
    throw new Refusal(406, `A record is ${RECORD_TYPE}: accept that type`);
  }
  const { signal } = request;
  // Uses the best record that arrived in time. Only the DHT is queried, as in `LookUps`.
  const record = await node.lowLevel.names
    .record(id, { signal, timeout: LOOK_UP_MS, delegated: false })
    .catch((error: unknown) => {
      if (signal.aborted || NodeError.is(error)) return undefined;
      throw error;
    });
  const general = { ...settings.headers, vary: "Accept", x_content_type_options: "nosniff" };
  if (record === undefined) {
    return {
      headers: { ...general, content_type: "text/plain; charset=utf-8", cache_control: NOTHING_FOUND },
      body: "delegate error: routing: not found\n",
    };
  }
  const { bytes, ttl, validity } = record;
  const left = Math.max(0, secondsUntil(validity));
  const age = Math.min(ttl > 0n ? secondsOf(ttl) : DEFAULT_TTL, left);
  const etag = recordTag(bytes);
  const headers = {
    ...general,
    content_type: RECORD_TYPE,
    content_disposition: `attachment; filename="${keyText(id)}.ipns-record"`,
    cache_control: `public, max-age=${age}, stale-while-revalidate=${left}, stale-if-error=${left}`,
    etag,
    expires: new Date(validity).toUTCString(),
    last_modified: new Date().toUTCString(),
  };
  return conditionalResponse(request, [etag], headers) ?? { headers, body: bytes };
}

/** Stores a record and publishes it. @throws {Refusal} */
export async function putRecord({ node, key, request, settings, signal }: RecordRequest): Promise<ResponseFields> {
  const id = nameIn(key);
  const type = request.header("content-type")?.replace(/;.*/s, "").trim().toLowerCase();
  if (type !== RECORD_TYPE) throw new Refusal(406, `The body must be ${RECORD_TYPE}, as its Content-Type must say`);
  const bytes = await bodyOf(request);
  await node.lowLevel.names.put(id, bytes, { signal }).catch((cause: unknown) => {
    if (signal.aborted) throw tooLate(`/ipns/${key}`, cause);
    if (!NodeError.is(cause)) throw cause;
    if (cause.code === "OFFLINE_COMMAND") throw new Refusal(503, cause.message, { cause });
    throw new Refusal(400, `provided record is invalid: ${cause.message}`, { cause });
  });
  return { headers: settings.headers, body: "" };
}

async function bodyOf({ body_stream }: HttpRequest): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of body_stream) {
    size += piece.length;
    if (size > MAX_RECORD_SIZE) throw new Refusal(413, `A record has at most ${MAX_RECORD_SIZE} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/**
 * Only CIDs of version 1 are accepted as names, because other forms would be duplicates in caches.
 * @throws {Refusal} 400
 */
function nameIn(text: string): ReturnType<typeof parsePeerId> {
  try {
    parseCid(text);
    if (!/^(Qm|1)/.test(text)) return parsePeerId(text);
  } catch (cause) {
    throw new Refusal(400, `unable to parse CID: ${(cause as Error).message}`, { cause });
  }
  throw new Refusal(400, "A name must be a CID of version 1 here, in base36");
}
