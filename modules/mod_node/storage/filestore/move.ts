/** Rewrites references for another root: their paths are relative to the folder with the repo. */
import { isAbsolute, join, relative, sep } from "node:path";
import type { CID } from "multiformats/cid";
import { matches } from "../../formats/cid/hashes.ts";
import type { BlockStore } from "../blockstore/store.ts";
import type { MetadataStore } from "../metadata/store.ts";
import { readBacking } from "./backing.ts";
import { isUrl, type Reference } from "./reference.ts";
import { ReferenceStore } from "./reference_store.ts";

export interface Move {
  /** The previous root. Paths of references are relative to it. */
  readonly from: string;
  /** The new root. */
  readonly to: string;
  /** Called with a sentence for each reference whose bytes are lost. */
  readonly onNotice: (sentence: string) => void;
}

/**
 * Rewrites references so that they point to the same files. References cannot point outside the new
 * root, so blocks of files there are stored in the block store.
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
