/** Which form of content a request gets. */
import type { ResponseFields } from "../../../core/types.ts";
import type { Asked } from "../asked.ts";
import { answerByRules, mayHaveRules } from "../redirects/index.ts";
import { requireTrustless } from "../request/trustless.ts";
import { type Found, find } from "../resolve.ts";
import { blockAnswer } from "./block.ts";
import { carAnswer } from "./car.ts";
import { documentAnswer, isDocument } from "./document.ts";
import { recordAnswer } from "./record.ts";
import { tarAnswer } from "./tar.ts";
import { unixfsAnswer } from "./unixfs.ts";

/** @throws NodeError, {Redirect}, {Refusal} */
export async function answerContent(asked: Asked): Promise<ResponseFields> {
  const { node, place, wanted, settings, reading } = asked;
  const { format } = wanted;
  if (!settings.deserialized) requireTrustless(place, format);
  if (format === "ipns-record") return recordAnswer(asked);
  if (format === "car") return carAnswer(asked);
  let found: Found;
  try {
    found = await find(node, place, reading);
  } catch (error) {
    if (mayHaveRules(asked, error)) return answerByRules(asked, error);
    throw error;
  }
  if (format === "raw") return blockAnswer(asked, found, "raw");
  if (format === "tar") return tarAnswer(asked, found);
  // Files that hold JSON or CBOR are files: `json` and `cbor` take them as they are.
  const isStrict = format === "dag-json" || format === "dag-cbor";
  return isStrict || isDocument(found) ? documentAnswer(asked, found) : unixfsAnswer(asked, found);
}
