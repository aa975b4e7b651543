/** Chooses the format of the content for a request. */
import type { ResponseFields } from "../../../core/types.ts";
import type { GatewayCall } from "../gateway_call.ts";
import { mayHaveRules, respondByRules } from "../redirects/index.ts";
import { requireTrustless } from "../request/trustless.ts";
import { type Found, find } from "../resolve.ts";
import { blockResponse } from "./block.ts";
import { carResponse } from "./car.ts";
import { documentResponse, isDocument } from "./document.ts";
import { recordResponse } from "./record.ts";
import { tarResponse } from "./tar.ts";
import { unixfsResponse } from "./unixfs.ts";

/** @throws NodeError, {Redirect}, {Refusal} */
export async function respondWithContent(call: GatewayCall): Promise<ResponseFields> {
  const { node, target, wanted, settings, reading } = call;
  const { format } = wanted;
  if (!settings.deserialized) requireTrustless(target, format);
  if (format === "ipns-record") return recordResponse(call);
  if (format === "car") return carResponse(call);
  let found: Found;
  try {
    found = await find(node, target, reading, format === "raw");
  } catch (error) {
    if (mayHaveRules(call, error)) return respondByRules(call, error);
    throw error;
  }
  if (format === "raw") return blockResponse(call, found, "raw");
  if (format === "tar") return tarResponse(call, found);
  // Files that contain JSON or CBOR are treated as files, so `json` and `cbor` return them
  // unchanged.
  const isStrict = format === "dag-json" || format === "dag-cbor";
  return isStrict || isDocument(found) ? documentResponse(call, found) : unixfsResponse(call, found);
}
