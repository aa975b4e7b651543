/** Headers of answers in a form of their own: what they are, and under which name they are saved. */
import type { ResponseHeaders } from "../../../core/types.ts";
import type { Asked } from "../asked.ts";
import { contentLocation } from "../request/content_location.ts";
import { type Format, formatTypes } from "../request/format.ts";
import { disposition } from "./disposition.ts";

/** `name` is what it is called where the query does not say it. */
export function savedHeaders(
  asked: Asked,
  format: Format,
  name: string,
  kind: "inline" | "attachment" = "attachment",
): ResponseHeaders {
  const isSaved = kind === "attachment" || asked.query.get("download") === "true";
  return {
    content_type: formatTypes[format],
    content_disposition: disposition(isSaved ? "attachment" : "inline", asked.query.get("filename") || name),
    content_location: contentLocation(asked, format),
    // What was chosen by Accept must not be kept for whoever asks for the same address without it.
    vary: asked.wanted.isImplied ? "Accept" : undefined,
    x_content_type_options: "nosniff",
  };
}
