/** Content-Location: an address that says by itself which form was answered, where the request does not. */
import type { Asked } from "../asked.ts";
import { escapedPath, visiblePath } from "../place.ts";
import type { Format } from "./format.ts";

/** Parameters of the media type of an archive, as they stand in a URL. */
const inUrl: Readonly<Record<string, string>> = { version: "car-version", order: "car-order", dups: "car-dups" };

export function contentLocation({ place, query, wanted }: Asked, format: Format): string | undefined {
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
  return `${escapedPath(visiblePath(place))}${place.slash ? "/" : ""}?${all}`;
}
