/**
 * Responds with one block as it is, or with a document in the codec that it is stored in, as bytes
 * with ranges.
 */
import { readSoon } from "modhost/node";
import type { ResponseFields } from "../../../core/types.ts";
import { contentResponse } from "../content/response.ts";
import { bytesSource } from "../content/source.ts";
import { Refusal } from "../errors/refusal.ts";
import type { GatewayCall } from "../gateway_call.ts";
import { conditionalResponse } from "../headers/conditions.ts";
import { contentHeaders } from "../headers/content.ts";
import { savedHeaders } from "../headers/saved.ts";
import { type Format, formatTypes } from "../request/format.ts";
import type { Found } from "../resolve.ts";

/** For each format of a single block: the file extension, and whether browsers show or save it. */
const forms = {
  raw: { extension: "bin", kind: "attachment" },
  json: { extension: "json", kind: "inline" },
  "dag-json": { extension: "json", kind: "inline" },
  cbor: { extension: "cbor", kind: "attachment" },
  "dag-cbor": { extension: "cbor", kind: "attachment" },
} as const satisfies Partial<Record<Format, object>>;

export type BlockFormat = keyof typeof forms;

/** Bytes of the largest block that is sent as raw bytes. Clients accept no larger ones. */
const MAX_RAW_BLOCK = 2 * 1024 * 1024;

/** @throws NodeError, {Refusal} */
export async function blockResponse(call: GatewayCall, found: Found, format: BlockFormat): Promise<ResponseFields> {
  const { extension, kind } = forms[format];
  const etag = `"${found.text}.${format}"`;
  const own = contentHeaders(call, found, etag);
  const known = conditionalResponse(call.request, [etag], own);
  if (known !== undefined) return known;
  const headers = { ...own, ...savedHeaders(call, format, `${found.text}.${extension}`, kind) };
  const coming = readSoon(call.reading.readLeaf, found.cid);
  const bytes = coming instanceof Promise ? await coming : coming;
  if (format === "raw" && bytes.length > MAX_RAW_BLOCK) {
    throw new Refusal(
      410,
      `${found.cid} has ${bytes.length} bytes: only blocks of up to ${MAX_RAW_BLOCK} bytes are served`,
    );
  }
  const source = bytesSource(bytes);
  return contentResponse(call, { source, type: formatTypes[format], headers });
}
