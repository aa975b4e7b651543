/** What the client has already. */
import { precondition } from "../../../core/http/index.ts";
import type { HttpRequest, ResponseFields, ResponseHeaders } from "../../../core/types.ts";

/**
 * 304 with the tag that the client named, 412, or undefined to go on. Any of `tags` will do; `modified` is in milliseconds.
 */
export function conditionAnswer(
  { headers: asked }: Pick<HttpRequest, "headers">,
  tags: readonly string[],
  headers: ResponseHeaders,
  modified = Number.NaN,
): ResponseFields | undefined {
  const { if_none_match, if_match, if_modified_since, if_unmodified_since } = asked;
  if ((if_none_match ?? if_match ?? if_modified_since ?? if_unmodified_since) === undefined) return undefined;
  let fails = true;
  for (const etag of tags) {
    // Of a weak tag, too, its text is compared.
    const status = precondition(asked, { etag: etag.replace(/^W\//, ""), modified });
    if (status === 304) {
      return { status_code: 304, headers: { ...headers, etag, x_ipfs_roots: undefined, last_modified: undefined } };
    }
    fails &&= status === 412;
  }
  if (!fails) return undefined;
  return { status_code: 412, headers: { ...headers, content_type: "text/plain; charset=utf-8" }, body: "" };
}
