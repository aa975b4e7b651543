/** Validates the endpoint of a pinning service, in the form that the configuration stores. */
import { posix } from "node:path";
import { failure } from "../../util/errors.ts";

/**
 * Returns the URL with a normalized path. As in go-ipfs, a fragment counts as part of the path.
 *
 * @throws NodeError with go-ipfs's texts for a URL that is not HTTP, a query, and a path that ends
 * in `/pins`
 */
export function serviceEndpoint(text: string): string {
  const [, scheme = "", host = "", path = "", query = ""] = /^(https?):\/\/([^/?#]*)([^?]*)(.*)$/is.exec(text) ?? [];
  if (host === "" || !URL.canParse(text) || /%(?![0-9a-f]{2})/i.test(path)) {
    throw failure("ARGUMENT_INVALID", { reason: "service endpoint must be a valid HTTP URL" });
  }
  if (query.length > 1)
    throw failure("ARGUMENT_INVALID", { reason: "service endpoint should be provided without any query parameters" });
  const clean = posix.normalize(`/${path}`).replace(/\/$/, "");
  if (clean.endsWith("/pins"))
    throw failure("ARGUMENT_INVALID", { reason: "service endpoint should be provided without the /pins suffix" });
  return `${scheme.toLowerCase()}://${host}${clean.replace(/[^\w\-.~!$&'()*+,;=:@/%]/gu, encodeURIComponent)}`;
}
