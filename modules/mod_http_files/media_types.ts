import { extname } from "node:path";
import type { Context } from "koa";

/**
 * Returns a function that sets Content-Type by the name of a file. `map` (extension to type) takes
 * precedence over Koa's table.
 */
export function mediaTypes(map: Readonly<Record<string, string>> = {}): (context: Context, path: string) => void {
  const own = new Map<string, string>();
  for (const [extension, type] of Object.entries(map)) own.set(`.${extension.replace(/^\./, "").toLowerCase()}`, type);
  return (context, path) => {
    const extension = extname(path).toLowerCase();
    const type = own.get(extension);
    if (type !== undefined) context.set("Content-Type", type);
    else if (extension !== "") context.type = extension;
    // Unknown extensions are sent as bytes. Text types have `charset=utf-8`.
    if (context.type === "") context.set("Content-Type", "application/octet-stream");
  };
}
