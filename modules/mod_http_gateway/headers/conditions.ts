/** Handles conditional requests. */
import { precondition } from "../../../core/http/index.ts";
import type { HttpRequest, ResponseFields, ResponseHeaders } from "../../../core/types.ts";

const conditions = ["if-none-match", "if-match", "if-modified-since", "if-unmodified-since"] as const;

/**
 * Returns a response with 304, including the tag that the client sent, or with 412; undefined to
 * continue. Any of `tags` may match; `modified` is in milliseconds.
 */
export function conditionalResponse(
  request: Pick<HttpRequest, "header">,
  tags: readonly string[],
  headers: ResponseHeaders,
  modified = Number.NaN,
): ResponseFields | undefined {
  if (conditions.every((name) => request.header(name) === undefined)) return undefined;
  let fails = true;
  for (const etag of tags) {
    // A weak tag is compared by its text, too.
    const status = precondition(request, { etag: etag.replace(/^W\//, ""), modified });
    if (status === 304) {
      return { status_code: 304, headers: { ...headers, etag, x_ipfs_roots: undefined, last_modified: undefined } };
    }
    fails &&= status === 412;
  }
  if (!fails) return undefined;
  return { status_code: 412, headers: { ...headers, content_type: "text/plain; charset=utf-8" }, body: "" };
}
