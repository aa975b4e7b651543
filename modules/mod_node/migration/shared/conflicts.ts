/** Finds content of two stores that cannot be joined, and applies the user's decision. */
import type { CID } from "multiformats/cid";
import { Journal, type MfsState } from "../../content/mfs/journal.ts";
import type { KeyHolder } from "../../storage/keystore/key_holder.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import { failure } from "../../util/errors.ts";
import { type MergeOptions, metadataConflicts, type OnConflict } from "./merge_metadata.ts";
import { emptyDirectory, type Source } from "./source.ts";

/** Maximum number of conflicts to report. */
const MAX_REPORTED = 10;

export interface Contents {
  readonly source: Pick<Source, "metadata" | "root">;
  readonly sourceKeys: KeyHolder;
  readonly metadata: MetadataStore;
  /** Undefined if keys are not copied. */
  readonly keys: KeyHolder | undefined;
}

/**
 * Refuses content that cannot be joined.
 * @throws NodeError that names the conflicts and says how to continue
 */
export async function refuseConflicts(
  { source, sourceKeys, metadata, keys }: Contents,
  onConflict: OnConflict,
): Promise<void> {
  if (keys !== undefined) await refuseOtherKeys(sourceKeys, keys);
  if (onConflict !== "refuse") return;
  const conflicts = await metadataConflicts(source.metadata, metadata, MAX_REPORTED);
  const files = await filesConflict(source.root, metadata);
  if (files !== undefined) conflicts.unshift(files);
  if (conflicts.length === 0) return;
  throw failure("MIGRATION_REFUSED", {
    reason:
      `nothing was copied, as both have:\n${conflicts.map((each) => `  ${each}\n`).join("")}` +
      "Say which one counts: --on-conflict keep (what is there) or --on-conflict replace",
  });
}

/**
 * Refuses keys with the same name and different content.
 * @throws NodeError with their names
 */
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

/** Adds the keys that are missing. The caller has called `refuseConflicts` before. */
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
 * Replaces the MFS root.
 * @throws NodeError with `refuse`, if somebody has stored other files meanwhile; errors of `check`
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

/** Whether storing that root loses nothing. */
const isFreeFor = (root: CID, { root: current = emptyDirectory, changes }: MfsState): boolean =>
  changes.length === 0 && (current.equals(root) || current.equals(emptyDirectory));
