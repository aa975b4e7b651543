/** Moves references to another root: they are paths relative to the folder that holds the repo. */
import { isAbsolute, join, relative, sep } from "node:path";
import type { CID } from "multiformats/cid";
import { matches } from "../../formats/cid/hashes.ts";
import type { BlockStore } from "../blockstore/store.ts";
import type { MetadataStore } from "../metadata/store.ts";
import { readBacking } from "./backing.ts";
import { isUrl, type Reference } from "./reference.ts";
import { ReferenceStore } from "./reference_store.ts";

export interface Move {
  /** The folders that paths are relative to. */
  readonly from: string;
  readonly to: string;
  /** Called for each reference that is lost. */
  readonly onNotice: (sentence: string) => void;
}

/**
 * Rewrites references so that they point to the same files. Blocks of files that are not below the new folder are
 * stored, since no reference may point there.
 */
export async function moveReferences(
  { blocks, metadata }: { readonly blocks: BlockStore; readonly metadata: MetadataStore },
  { from, to, onNotice }: Move,
): Promise<void> {
  if (from === to) return;
  const references = new ReferenceStore(metadata);
  for await (const { cid, reference } of references.list()) {
    if (isUrl(reference.path)) continue;
    const path = relative(to, join(from, reference.path));
    const isBelow = !isAbsolute(path) && path !== ".." && !path.startsWith(`..${sep}`);
    if (isBelow) {
      await references.put([{ cid, reference: { ...reference, path: path.split(sep).join("/") } }]);
      continue;
    }
    const bytes = await read(from, cid, reference);
    if (bytes === undefined) onNotice(`${cid} is lost: ${join(from, reference.path)} has changed`);
    else await blocks.put([{ cid, bytes }]);
    await references.delete([cid]);
  }
  await blocks.sync();
}

async function read(root: string, cid: CID, reference: Reference): Promise<Uint8Array | undefined> {
  const bytes = await readBacking(root, reference).catch(() => undefined);
  return bytes !== undefined && (await matches(cid, bytes)) ? bytes : undefined;
}
