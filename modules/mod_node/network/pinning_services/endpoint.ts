/** Where a pinning service is: its URL as the configuration keeps it. */
import { posix } from "node:path";
import { NodeError } from "../../util/errors.ts";

/**
 * The URL less doubled, dotted and trailing slashes; a fragment is a part of the path.
 *
 * @throws NodeError with the reference's texts: no HTTP URL, a query, the path of a pin list
 */
export function serviceEndpoint(text: string): string {
  const [, scheme = "", host = "", path = "", query = ""] = /^(https?):\/\/([^/?#]*)([^?]*)(.*)$/is.exec(text) ?? [];
  if (host === "" || !URL.canParse(text) || /%(?![0-9a-f]{2})/i.test(path)) {
    throw new NodeError("service endpoint must be a valid HTTP URL");
  }
  if (query.length > 1) throw new NodeError("service endpoint should be provided without any query parameters");
  const clean = posix.normalize(`/${path}`).replace(/\/$/, "");
  if (clean.endsWith("/pins")) throw new NodeError("service endpoint should be provided without the /pins suffix");
  return `${scheme.toLowerCase()}://${host}${clean.replace(/[^\w\-.~!$&'()*+,;=:@/%]/gu, encodeURIComponent)}`;
}
