/** Writes CIDs in the base and version that a caller requested. */
import type { CID } from "multiformats/cid";
import { multibaseNamed } from "./multibase.ts";
import { cidText, parseCidWithBase } from "./text.ts";

export interface CidForm {
  /** Multibase for CIDs of version 1, by name or prefix; base32 by default. */
  readonly cidBase?: string | undefined;
  /** Whether CIDs of version 0 are written as version 1. */
  readonly upgradeCidv0InOutput?: boolean | undefined;
}

/**
 * `upgraded` writes version 0 as version 1 if a base is given, as newer commands do; `kept` does
 * not change the version.
 */
export type CidLevel = "upgraded" | "kept";

export type WriteCid = (cid: CID) => string;

/** @throws NodeError for an unknown base */
export function cidWriter(form: CidForm, level: CidLevel = "upgraded"): WriteCid {
  const { cidBase = "", upgradeCidv0InOutput: forced } = form;
  const base = cidBase === "" ? undefined : multibaseNamed(cidBase);
  const upgrade = forced ?? (base !== undefined && level === "upgraded");
  return (cid) => cidText(upgrade ? cid.toV1() : cid, base);
}

/**
 * Same as `cidWriter`, but without a given base CIDs are written in the base of the CID in the
 * path.
 *
 * @throws NodeError for an unknown base
 */
export function cidWriterFor(path: string, form: CidForm, level: CidLevel = "upgraded"): WriteCid {
  const named = (form.cidBase ?? "") !== "";
  const own = named || path.startsWith("/ipns/") ? undefined : cidIn(path);
  if (own === undefined) return cidWriter(form, level);
  return (cid) => (own.cid.version === 0 ? cid.toString() : cidText(cid.toV1(), own.base));
}

function cidIn(path: string): ReturnType<typeof parseCidWithBase> | undefined {
  const [first = "", , third = ""] = path.split("/");
  try {
    return parseCidWithBase(first === "" ? third : first);
  } catch {
    return undefined;
  }
}
