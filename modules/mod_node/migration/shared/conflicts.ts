/** What of two stores cannot both be kept, and who decides. */
import type { CID } from "multiformats/cid";
import { Journal, type MfsState } from "../../content/mfs/journal.ts";
import type { KeyHolder } from "../../storage/keystore/key_holder.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import { failure } from "../../util/errors.ts";
import { type MergeOptions, metadataConflicts, type OnConflict } from "./merge_metadata.ts";
import { emptyDirectory, type Source } from "./source.ts";

/** Conflicts that are told. */
const MAX_TOLD = 10;

export interface Contents {
  readonly source: Pick<Source, "metadata" | "root">;
  readonly sourceKeys: KeyHolder;
  readonly metadata: MetadataStore;
  /** Undefined where keys are not copied. */
  readonly keys: KeyHolder | undefined;
}

/** @throws NodeError that names what is in the way, and how to go on */
export async function refuseConflicts(
  { source, sourceKeys, metadata, keys }: Contents,
  onConflict: OnConflict,
): Promise<void> {
  if (keys !== undefined) await refuseOtherKeys(sourceKeys, keys);
  if (onConflict !== "refuse") return;
  const told = await metadataConflicts(source.metadata, metadata, MAX_TOLD);
  const files = await filesConflict(source.root, metadata);
  if (files !== undefined) told.unshift(files);
  if (told.length === 0) return;
  throw failure("MIGRATION_REFUSED", {
    reason:
      `nothing was copied, as both have:\n${told.map((each) => `  ${each}\n`).join("")}` +
      "Say which one counts: --on-conflict keep (what is there) or --on-conflict replace",
  });
}

/** @throws NodeError when the same name is that of another key */
export async function refuseOtherKeys(from: KeyHolder, to: KeyHolder): Promise<void> {
  const found: string[] = [];
  for (const name of await from.names()) {
    const ours = await from.get(name);
    const theirs = await to.get(name);
    if (ours !== undefined && theirs !== undefined && Buffer.compare(ours, theirs) !== 0) found.push(name);
  }
  if (found.length === 0) return;
  throw failure("MIGRATION_REFUSED", {
    reason: `nothing was copied, as both have a key of this name, and not the same: ${found.join(", ")}. Rename one (modhost node key rename)`,
  });
}

/** Gives those that are missing. Call `refuseConflicts` before. */
export async function mergeKeys(from: KeyHolder, to: KeyHolder): Promise<number> {
  const names = await from.names();
  for (const name of names) {
    const bytes = await from.get(name);
    if (bytes !== undefined) await to.add(name, bytes);
  }
  return names.length;
}

async function filesConflict(root: CID | undefined, metadata: MetadataStore): Promise<string | undefined> {
  if (root === undefined) return undefined;
  const state = await new Journal(metadata).state();
  if (isFreeFor(root, state)) return undefined;
  const later = state.changes.length === 0 ? "" : ", with later changes";
  return `files of their own (MFS): ${root} and ${state.root ?? emptyDirectory}${later}`;
}

/**
 * Makes it the root of the files. @throws NodeError with `refuse`, where others were stored
 * meanwhile; what `check` throws
 */
export async function giveRoot(
  root: CID,
  metadata: MetadataStore,
  { onConflict, check = () => {} }: MergeOptions,
): Promise<void> {
  const isMeant = (now: MfsState) => {
    check();
    return onConflict === "replace" || isFreeFor(root, now);
  };
  const isGiven = await new Journal(metadata).replace(root, isMeant);
  if (!isGiven && onConflict === "refuse")
    throw failure("MIGRATION_REFUSED", {
      reason: "files were stored meanwhile: start again with --on-conflict keep or replace",
    });
}

/** Whether nothing is lost where that root is stored. */
const isFreeFor = (root: CID, { root: held = emptyDirectory, changes }: MfsState): boolean =>
  changes.length === 0 && (held.equals(root) || held.equals(emptyDirectory));
