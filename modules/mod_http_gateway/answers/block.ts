/** One block as it is, or a document in the codec that it is stored in: bytes, with ranges. */
import { readSoon } from "modhost/node";
import type { ResponseFields } from "../../../core/types.ts";
import type { Asked } from "../asked.ts";
import { contentAnswer } from "../content/answer.ts";
import { bytesSource } from "../content/source.ts";
import { Refusal } from "../errors/refusal.ts";
import { conditionAnswer } from "../headers/conditions.ts";
import { contentHeaders } from "../headers/content.ts";
import { savedHeaders } from "../headers/saved.ts";
import { type Format, formatTypes } from "../request/format.ts";
import type { Found } from "../resolve.ts";

/** Of each form in which a single block is answered: the end of its name, and whether browsers show it. */
const forms = {
  raw: { extension: "bin", kind: "attachment" },
  json: { extension: "json", kind: "inline" },
  "dag-json": { extension: "json", kind: "inline" },
  cbor: { extension: "cbor", kind: "attachment" },
  "dag-cbor": { extension: "cbor", kind: "attachment" },
} as const satisfies Partial<Record<Format, object>>;

export type BlockFormat = keyof typeof forms;

/** Bytes of the largest block that goes out as it is: clients take none that are larger. */
const MAX_RAW_BLOCK = 2 * 1024 * 1024;

/** @throws NodeError, {Refusal} */
export async function blockAnswer(asked: Asked, found: Found, format: BlockFormat): Promise<ResponseFields> {
  const { extension, kind } = forms[format];
  const etag = `"${found.text}.${format}"`;
  const own = contentHeaders(asked, found, etag);
  const known = conditionAnswer(asked.request, [etag], own);
  if (known !== undefined) return known;
  const headers = { ...own, ...savedHeaders(asked, format, `${found.text}.${extension}`, kind) };
  const coming = readSoon(asked.reading.readLeaf, found.cid);
  const bytes = coming instanceof Promise ? await coming : coming;
  if (format === "raw" && bytes.length > MAX_RAW_BLOCK) {
    throw new Refusal(410, `${found.cid} has ${bytes.length} bytes: blocks of at most ${MAX_RAW_BLOCK} are served`);
  }
  const source = bytesSource(bytes);
  return contentAnswer(asked, { source, type: formatTypes[format], headers });
}
