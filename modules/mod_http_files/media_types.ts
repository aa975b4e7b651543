import { extname } from "node:path";
import { detachedContext } from "../../core/http/index.ts";

const memoEntries = 500;

/** A function from file name to Content-Type: `map` (extension to type) goes before koa's table. */
export function mediaTypes(map: Readonly<Record<string, string>> = {}): (path: string) => string {
  const known = new Map<string, string>();
  for (const [extension, type] of Object.entries(map))
    known.set(`.${extension.replace(/^\./, "").toLowerCase()}`, type);
  return (path) => {
    const extension = extname(path).toLowerCase();
    const type = known.get(extension) ?? lookUp(extension);
    if (known.size < memoEntries) known.set(extension, type);
    return type;
  };
}

/** Text types come with `charset=utf-8`; what nobody knows is bytes. */
function lookUp(extension: string): string {
  const { response } = detachedContext();
  response.type = extension;
  return response.get("Content-Type") || "application/octet-stream";
}
