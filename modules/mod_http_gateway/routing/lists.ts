/** Responds with records: as one JSON document, or as one line per record, sent as it is found. */
import type { PeerRecord } from "modhost/node";
import type { HttpRequest, ResponseFields } from "../../../core/types.ts";
import { Refusal } from "../errors/refusal.ts";
import { queryOf } from "../request/query.ts";
import type { GatewaySettings } from "../settings.ts";
import { type Filter, filterOf } from "./filters.ts";
import type { PeerRecords } from "./look_ups.ts";

/** Maximum number of records in a document. A stream contains all of them. */
const MAX_LISTED = 100;
const JSON_TYPE = "application/json";
const LINES_TYPE = "application/x-ndjson";

/** Cache lifetimes. A missing record may appear soon, while provider records live for two days. */
export const NOTHING_FOUND = "public, max-age=15, stale-while-revalidate=60, stale-if-error=3600";
const FOUND = "public, max-age=300, stale-while-revalidate=172800, stale-if-error=172800";

interface ListRequest {
  readonly request: HttpRequest;
  readonly settings: Pick<GatewaySettings, "headers">;
}

/** @throws {Refusal} 406 */
export async function listResponse(
  member: "Providers" | "Peers",
  records: PeerRecords,
  { request, settings }: ListRequest,
): Promise<ResponseFields> {
  const type = typeFor(request.header("accept"));
  const wanted = filtered(records, filterOf(queryOf(request)));
  const headers = (isFound: boolean) => ({
    ...settings.headers,
    content_type: type,
    vary: "Accept",
    last_modified: new Date().toUTCString(),
    cache_control: isFound ? FOUND : NOTHING_FOUND,
  });
  if (type === JSON_TYPE) {
    const listed: PeerRecord[] = [];
    for await (const record of wanted) if (listed.push(record) === MAX_LISTED) break;
    return { headers: headers(listed.length > 0), body: JSON.stringify({ [member]: listed }) };
  }
  // The head depends on whether there is any record.
  const first = await wanted.next();
  if (first.done === true) return { headers: headers(false), body: "" };
  if (request.method !== "HEAD") return { headers: headers(true), body: lines(first.value, wanted) };
  await wanted.return();
  return { headers: headers(true), body: "" };
}

/** Returns the first supported type that the client accepts. */
function typeFor(accept = "*/*"): typeof JSON_TYPE | typeof LINES_TYPE {
  for (const item of accept.toLowerCase().split(",")) {
    const type = item.replace(/;.*/s, "").trim();
    if (type === LINES_TYPE) return LINES_TYPE;
    if (type === JSON_TYPE || type === "application/*" || type === "*/*") return JSON_TYPE;
  }
  throw new Refusal(406, `The response is ${JSON_TYPE} or ${LINES_TYPE}: accept one of them`);
}

async function* filtered(records: PeerRecords, filter: Filter): PeerRecords {
  for await (const record of records) {
    const filtered = filter(record);
    if (filtered !== undefined) yield filtered;
  }
}

async function* lines(first: PeerRecord, others: PeerRecords): AsyncGenerator<string, void, undefined> {
  yield `${JSON.stringify(first)}\n`;
  for await (const record of others) yield `${JSON.stringify(record)}\n`;
}
