import { codingWeights, preferredCoding } from "../../core/http/index.ts";
import { type Found, locateFile } from "./locate.ts";

/** A content coding and the suffix of files that hold it; the better one first. */
const codings = [
  { name: "br", suffix: ".br" },
  { name: "zstd", suffix: ".zst" },
  { name: "gzip", suffix: ".gz" },
] as const;

export interface Variant {
  readonly found: Found;
  readonly coding: string | undefined;
  /** The choice depends on Accept-Encoding. */
  readonly varies: boolean;
}

/**
 * The form of a file that the client likes best: `page.html.br`, `.zst` or `.gz` beside `page.html`, or the file itself. A
 * form that is older than the file holds what it was before, and is not sent.
 */
export async function chooseVariant(plain: Found, acceptEncoding: string | undefined): Promise<Variant> {
  const none = { found: plain, coding: undefined, varies: false };
  if (codings.some(({ suffix }) => plain.path.endsWith(suffix))) return none;
  const beside = await Promise.all(
    codings.map(async ({ name, suffix }) => [name, await locateFile(plain, plain.path + suffix)] as const),
  );
  const forms = new Map(beside.filter(([, found]) => found !== undefined && !isOlder(found, plain)));
  if (forms.size === 0) return none;
  const coding = preferredCoding(codingWeights(acceptEncoding), [...forms.keys()]);
  const found = coding === undefined ? undefined : forms.get(coding);
  return found === undefined ? { ...none, varies: true } : { found, coding, varies: true };
}

/** By whole seconds: what packs and copies files may leave out their fractions. */
function isOlder(form: Found, plain: Found): boolean {
  return Math.floor(form.stats.mtimeMs / 1000) < Math.floor(plain.stats.mtimeMs / 1000);
}
