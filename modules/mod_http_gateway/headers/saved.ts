/** Headers of responses that are saved as files: their type and file name. */
import type { ResponseHeaders } from "../../../core/types.ts";
import type { GatewayCall } from "../gateway_call.ts";
import { contentLocation } from "../request/content_location.ts";
import { type Format, formatTypes } from "../request/format.ts";
import { disposition } from "./disposition.ts";

/** `name` is the file name if the query has none. */
export function savedHeaders(
  call: GatewayCall,
  format: Format,
  name: string,
  kind: "inline" | "attachment" = "attachment",
): ResponseHeaders {
  const isSaved = kind === "attachment" || call.query.get("download") === "true";
  return {
    content_type: formatTypes[format],
    content_disposition: disposition(isSaved ? "attachment" : "inline", call.query.get("filename") || name),
    content_location: contentLocation(call, format),
    // A response chosen by Accept must not be cached for clients that send another Accept to the
    // same address.
    vary: call.wanted.isImplied ? "Accept" : undefined,
    x_content_type_options: "nosniff",
  };
}
