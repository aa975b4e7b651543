/**
 * Changes a directory by its CID. Each change returns the CID of a new directory; the old one is
 * unchanged.
 */
import type { CID } from "multiformats/cid";
import { BlockBatch } from "../../storage/blockstore/batch.ts";
import type { BlockService } from "../../storage/blockstore/block_service.ts";
import { failure } from "../../util/errors.ts";
import type { ReadBlock } from "../dag/reader.ts";
import type { Built } from "../unixfs/build.ts";
import { buildDirectory } from "../unixfs/directory.ts";
import type { Sharding } from "../unixfs/sharding.ts";
import { Folder } from "./folder.ts";

export interface EditTreeOptions {
  /** Names from the root to the entry; at least one. */
  readonly path: readonly string[];
  readonly read: ReadBlock;
  readonly blocks: BlockService;
  /** When a directory becomes sharded by a new entry, or plain by the removal of one. */
  readonly sharded: Sharding;
  readonly fanout?: number | undefined;
}

/**
 * Adds an entry or replaces the existing one, and creates the directories above it. `link` is the
 * CID and the size of the entry. Nothing is pinned.
 *
 * @throws NodeError for a root that is not a directory, and for a file on the path
 */
export function putIntoTree(root: CID, link: Built, options: EditTreeOptions): Promise<CID> {
  return edited(root, options, async (top, batch) => {
    const { path, sharded, fanout } = options;
    let folder = top;
    for (const [at, name] of path.slice(0, -1).entries()) {
      const found = await folder.findChild(name);
      if (found === undefined) {
        let built = link;
        for (const below of path.slice(at + 1).toReversed())
          built = await buildDirectory([{ name: below, ...built }], { ...folder.settings, sharded, fanout }, batch.add);
        return folder.put({ name, ...built });
      }
      if (!(found instanceof Folder)) throw failure("FILE_EXISTS");
      folder = found;
    }
    return folder.put({ name: path.at(-1) as string, ...link });
  });
}

/**
 * Removes an entry. Returns the same root if there is none. @throws NodeError if the directory of
 * the entry does not exist
 */
export function removeFromTree(root: CID, options: EditTreeOptions): Promise<CID> {
  return edited(root, options, async (top) => {
    const { path } = options;
    let folder = top;
    for (const name of path.slice(0, -1)) {
      const found = await folder.findChild(name);
      if (!(found instanceof Folder)) throw failure("FILE_NOT_FOUND");
      folder = found;
    }
    const name = path.at(-1) as string;
    if ((await folder.find(name)) !== undefined) await folder.remove(name);
  });
}

async function edited(
  cid: CID,
  { read, blocks, sharded, fanout }: EditTreeOptions,
  edit: (top: Folder, batch: BlockBatch) => Promise<void>,
): Promise<CID> {
  const deps = { read, sharding: () => ({ sharded, fanout }), changed: () => undefined };
  // Nothing links to this directory, so the size in its link does not matter.
  const top = new Folder({ name: "", cid, size: 0 }, await read(cid), deps);
  const batch = new BlockBatch(blocks);
  await edit(top, batch);
  const built = await top.write(batch.add, []);
  await batch.flush();
  return built.cid;
}
