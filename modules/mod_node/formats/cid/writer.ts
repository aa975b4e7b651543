/** How CIDs are written for a caller. */
import type { CID } from "multiformats/cid";
import { multibaseNamed } from "./multibase.ts";
import { cidText, parseCidWithBase } from "./text.ts";

export interface CidForm {
  /** Multibase of CIDs of version 1, by name or prefix; base32 unless named. */
  readonly cidBase?: string | undefined;
  /** Version 0 is written as version 1. */
  readonly upgradeCidv0InOutput?: boolean | undefined;
}

/**
 * `upgraded`: version 0 is shown as version 1 when a base is named, as commands of the upper level
 * do.
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
 * The same, but where no base is named CIDs are written as the path has its own. @throws NodeError
 * for an unknown base
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
