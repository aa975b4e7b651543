/** Documents: blocks of JSON and CBOR, as they are stored. Nothing is converted. */
import type { ResponseFields } from "../../../core/types.ts";
import type { Asked } from "../asked.ts";
import { Refusal } from "../errors/refusal.ts";
import { conditionAnswer } from "../headers/conditions.ts";
import { contentHeaders } from "../headers/content.ts";
import { escapedPath, visiblePath } from "../place.ts";
import { suffixOf } from "../request/query.ts";
import { Redirect } from "../request/redirect.ts";
import type { Found } from "../resolve.ts";
import { type BlockFormat, blockAnswer } from "./block.ts";
import { documentPage, documentPageTag } from "./document_page.ts";

type DocumentFormat = Exclude<BlockFormat, "raw">;

/** Codecs by their numbers in the multicodec table. */
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

/** In which codecs a form may be stored: the plain ones take what differs in its links alone. */
const stored: Readonly<Record<DocumentFormat, readonly string[]>> = {
  json: ["json", "dag-json"],
  cbor: ["cbor", "dag-cbor"],
  "dag-json": ["dag-json"],
  "dag-cbor": ["dag-cbor"],
};

export const isDocument = ({ cid }: Found): boolean => byCodec.has(cid.code);

/** @throws NodeError, {Redirect}, {Refusal} 406 */
export async function documentAnswer(asked: Asked, found: Found): Promise<ResponseFields> {
  const codec = codecs[found.cid.code] ?? `0x${found.cid.code.toString(16)}`;
  const { format } = asked.wanted;
  if (format === undefined) {
    const own = byCodec.get(found.cid.code) as DocumentFormat;
    const { headers, ...answer } = await (showsPage(asked, codec)
      ? pageAnswer(asked, found)
      : blockAnswer(asked, found, own));
    // Browsers and programs get another one at the same address.
    return { ...answer, headers: { ...headers, vary: "Accept" } };
  }
  if (!stored[format as DocumentFormat].includes(codec)) {
    throw new Refusal(
      406,
      `format ${JSON.stringify(format)} requested but block has codec ${JSON.stringify(codec)}: codec conversion is not supported, fetch raw block with ?format=raw and convert client-side`,
    );
  }
  return blockAnswer(asked, found, format as DocumentFormat);
}

/** What has links is a page for browsers, unless it is to be saved. */
function showsPage({ request, query }: Asked, codec: string): boolean {
  if (request.headers.accept?.includes("text/html") !== true || query.get("download") === "true") return false;
  return codec === "dag-json" || codec === "dag-cbor";
}

async function pageAnswer(asked: Asked, found: Found): Promise<ResponseFields> {
  const { place, request } = asked;
  if (!place.slash) throw new Redirect(301, `${escapedPath(visiblePath(place))}/${suffixOf(request)}`);
  const tag = documentPageTag(found);
  const headers = { ...contentHeaders(asked, found, tag), cache_control: undefined, last_modified: undefined };
  const known = conditionAnswer(request, [tag, `"${found.text}"`], headers);
  return known ?? documentPage(asked, found, headers, codecs[found.cid.code] as "dag-json" | "dag-cbor");
}
