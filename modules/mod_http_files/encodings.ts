import { type Found, locateFile } from "./locate.ts";

/** A content coding and the suffix of files that hold it; the better one first. */
const codings = [
  { name: "br", suffix: ".br" },
  { name: "gzip", suffix: ".gz" },
] as const;

export interface Variant {
  readonly found: Found;
  readonly coding: string | undefined;
  /** The choice depends on Accept-Encoding. */
  readonly varies: boolean;
}

/** The form of a file that the client likes best: `page.html.br` or `.gz` beside `page.html`, or the file itself. */
export async function chooseVariant(plain: Found, acceptEncoding: string | undefined): Promise<Variant> {
  const none = { found: plain, coding: undefined, varies: false };
  if (codings.some(({ suffix }) => plain.path.endsWith(suffix))) return none;
  const beside = await Promise.all(codings.map(({ suffix }) => locateFile(plain.root, plain.path + suffix)));
  if (beside.every((found) => found === undefined)) return none;
  const wishes = parseWishes(acceptEncoding ?? "");
  let best: Variant = { ...none, varies: true };
  let most = wishes.get("identity") ?? 0;
  for (const [at, { name }] of codings.entries()) {
    const found = beside[at];
    const wish = wishes.get(name) ?? wishes.get("*") ?? 0;
    const better = best.coding === undefined ? wish >= most : wish > most;
    if (found === undefined || wish === 0 || !better) continue;
    best = { found, coding: name, varies: true };
    most = wish;
  }
  return best;
}

/** Coding to weight, from 0 (refused) to 1 (RFC 9110 12.5.3). */
function parseWishes(header: string): Map<string, number> {
  const wishes = new Map<string, number>();
  for (const item of header.toLowerCase().split(",")) {
    const [, name, weight] = /^\s*(?:x-(?=gzip))?([^\s;]+)\s*(?:;\s*q\s*=\s*([\d.]+)\s*)?$/.exec(item) ?? [];
    if (name !== undefined) wishes.set(name, weight === undefined ? 1 : Math.min(Number(weight) || 0, 1));
  }
  return wishes;
}
