import { codingWeights, preferredCoding } from "../../core/http/index.ts";
import { type Found, locateFile } from "./locate.ts";

/** Content codings with the suffix of their files, the best one first. */
const codings = [
  { name: "br", suffix: ".br" },
  { name: "zstd", suffix: ".zst" },
  { name: "gzip", suffix: ".gz" },
] as const;

export interface Variant {
  readonly found: Found;
  readonly coding: string | undefined;
  /** Whether the choice depends on Accept-Encoding. */
  readonly varies: boolean;
}

/**
 * Returns the variant of a file that the client prefers: `page.html.br`, `.zst` or `.gz` next to
 * `page.html`, or the file itself. A compressed form that is older than the file is outdated, and
 * is not sent.
 */
export async function chooseVariant(plain: Found, acceptEncoding: string | undefined): Promise<Variant> {
  const none = { found: plain, coding: undefined, varies: false };
  if (codings.some(({ suffix }) => plain.path.endsWith(suffix))) return none;
  const siblings = await Promise.all(
    codings.map(async ({ name, suffix }) => [name, await locateFile(plain, plain.path + suffix)] as const),
  );
  const forms = new Map(siblings.filter(([, found]) => found !== undefined && !isOlder(found, plain)));
  if (forms.size === 0) return none;
  const coding = preferredCoding(codingWeights(acceptEncoding), [...forms.keys()]);
  const found = coding === undefined ? undefined : forms.get(coding);
  return found === undefined ? { ...none, varies: true } : { found, coding, varies: true };
}

/** Compares whole seconds, because programs that compress or copy files may drop fractions. */
function isOlder(form: Found, plain: Found): boolean {
  return Math.floor(form.stats.mtimeMs / 1000) < Math.floor(plain.stats.mtimeMs / 1000);
}
