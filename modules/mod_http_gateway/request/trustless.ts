/**
 * Responses that a client can verify by itself: a block by its CID, an archive block by block, a
 * record by its signature.
 */

import type { ContentTarget } from "../content_target.ts";
import { Refusal } from "../errors/refusal.ts";
import type { Format } from "./format.ts";
import { keyOf } from "./path.ts";

/**
 * Refuses a request for a response that a client cannot verify, at gateways without other
 * responses. @throws {Refusal} 406
 */
export function requireTrustless({ namespace, root, segments }: ContentTarget, format: Format | undefined): void {
  if (namespace === "ipfs" && (format === "car" || (format === "raw" && segments.length === 0))) return;
  if (namespace === "ipns" && format === "ipns-record" && keyOf(root) !== undefined) return;
  throw new Refusal(
    406,
    "only trustless requests are accepted on this gateway: https://specs.ipfs.tech/http-gateways/trustless-gateway/",
  );
}
