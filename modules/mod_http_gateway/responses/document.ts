/** Responds with documents: blocks of JSON and CBOR as they are stored, without conversion. */
import type { ResponseFields } from "../../../core/types.ts";
import { escapedPath, visiblePath } from "../content_target.ts";
import { Refusal } from "../errors/refusal.ts";
import type { GatewayCall } from "../gateway_call.ts";
import { conditionalResponse } from "../headers/conditions.ts";
import { contentHeaders } from "../headers/content.ts";
import { suffixOf } from "../request/query.ts";
import { Redirect } from "../request/redirect.ts";
import type { Found } from "../resolve.ts";
import { type BlockFormat, blockResponse } from "./block.ts";
import { documentPage, documentPageTag } from "./document_page.ts";

type DocumentFormat = Exclude<BlockFormat, "raw">;

/** Codec names by their numbers in the multicodec table. */
const codecs: Readonly<Record<number, string>> = {
  81: "cbor",
  85: "raw",
  112: "dag-pb",
  113: "dag-cbor",
  114: "libp2p-key",
  297: "dag-json",
  512: "json",
};

const byCodec: ReadonlyMap<number, DocumentFormat> = new Map([
  [0x51, "cbor"],
  [0x71, "dag-cbor"],
  [0x0129, "dag-json"],
  [0x0200, "json"],
]);

/**
 * The codecs in which each format may be stored. The plain formats accept the variants with links
 * too, which only differ in their links.
 */
const stored: Readonly<Record<DocumentFormat, readonly string[]>> = {
  json: ["json", "dag-json"],
  cbor: ["cbor", "dag-cbor"],
  "dag-json": ["dag-json"],
  "dag-cbor": ["dag-cbor"],
};

export const isDocument = ({ cid }: Found): boolean => byCodec.has(cid.code);

/** @throws NodeError, {Redirect}, {Refusal} 406 */
export async function documentResponse(call: GatewayCall, found: Found): Promise<ResponseFields> {
  const codec = codecs[found.cid.code] ?? `0x${found.cid.code.toString(16)}`;
  const { format } = call.wanted;
  if (format === undefined) {
    const own = byCodec.get(found.cid.code) as DocumentFormat;
    const { headers, ...response } = await (showsPage(call, codec)
      ? pageResponse(call, found)
      : blockResponse(call, found, own));
    // Browsers and programs get different responses at the same address.
    return { ...response, headers: { ...headers, vary: "Accept" } };
  }
  if (!stored[format as DocumentFormat].includes(codec)) {
    throw new Refusal(
      406,
      `format ${JSON.stringify(format)} requested but block has codec ${JSON.stringify(codec)}: codec conversion is not supported, fetch raw block with ?format=raw and convert client-side`,
    );
  }
  return blockResponse(call, found, format as DocumentFormat);
}

/** Browsers get a page for a document with links, unless it is to be saved. */
function showsPage({ request, query }: GatewayCall, codec: string): boolean {
  if (request.header("accept")?.includes("text/html") !== true || query.get("download") === "true") return false;
  return codec === "dag-json" || codec === "dag-cbor";
}

async function pageResponse(call: GatewayCall, found: Found): Promise<ResponseFields> {
  const { target, request } = call;
  if (!target.slash) throw new Redirect(301, `${escapedPath(visiblePath(target))}/${suffixOf(request)}`);
  const tag = documentPageTag(found);
  const headers = { ...contentHeaders(call, found, tag), cache_control: undefined, last_modified: undefined };
  const known = conditionalResponse(request, [tag, `"${found.text}"`], headers);
  return known ?? documentPage(call, found, headers, codecs[found.cid.code] as "dag-json" | "dag-cbor");
}
