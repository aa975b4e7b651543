/** Content-Location: a URL that names the format of the response, if the requested URL does not. */

import { escapedPath, visiblePath } from "../content_target.ts";
import type { GatewayCall } from "../gateway_call.ts";
import type { Format } from "./format.ts";

/** Names in a URL of the parameters of the archive's media type. */
const inUrl: Readonly<Record<string, string>> = { version: "car-version", order: "car-order", dups: "car-dups" };

export function contentLocation({ target, query, wanted }: GatewayCall, format: Format): string | undefined {
  if (!wanted.isImplied) return undefined;
  const all = new URLSearchParams(query);
  all.set("format", format);
  if (format === "car") {
    for (const [name, value] of wanted.parameters) {
      const parameter = inUrl[name];
      if (parameter !== undefined && !all.has(parameter)) all.set(parameter, value);
    }
  }
  all.sort();
  return `${escapedPath(visiblePath(target))}${target.slash ? "/" : ""}?${all}`;
}
