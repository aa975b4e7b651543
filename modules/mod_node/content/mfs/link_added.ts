/** Links added content into MFS. Invalid destinations are rejected as in the reference. */
import type { CID } from "multiformats/cid";
import { failure, NodeError, reworded } from "../../util/errors.ts";
import { quote } from "../../util/go/text.ts";
import { Folder } from "./folder.ts";
import { lookup, lookupFolder } from "./lookup.ts";
import type { ChangeOptions, Namespace } from "./namespace.ts";
import { entryOf, type NamespacePath, nameOf, namespacePath, parentOf } from "./path.ts";

/** The root of added content. */
export interface AddedRoot {
  /** Undefined for a root without a name. */
  readonly name: string | undefined;
  readonly cid: CID;
  /** Size in bytes of its block and all blocks below it. */
  readonly size: number;
}

/**
 * Links roots one after the other. If `to` is empty or ends with a slash, it is a directory for all
 * roots. Otherwise it is the path of the only root.
 */
export class AddedLinks {
  readonly #files: Namespace;
  readonly #to: string;
  readonly #options: ChangeOptions;
  #any = false;

  constructor(files: Namespace, to: string, options: ChangeOptions) {
    this.#files = files;
    this.#to = to === "" ? "/" : to;
    this.#options = options;
  }

  /** @throws NodeError whose text begins with `to-files: ` */
  async link({ name, cid, size }: AddedRoot): Promise<void> {
    await withPrefix("to-files: ", async () => {
      if (name === undefined) throw failure("FILES_PATH_INVALID", { reason: "cannot add unnamed files to MFS" });
      const dest = namespacePath(this.#to);
      await this.#files.change(this.#options, async (root) => {
        const target = await this.#targetPath(root, dest, name);
        const folder = await lookupFolder(root, parentOf(target));
        await withPrefix(`cannot put node in path ${quote(target.text)}: `, () =>
          folder.add({ name: nameOf(target), cid, size }),
        );
      });
      this.#any = true;
    });
  }

  async #targetPath(root: Folder, dest: NamespacePath, name: string): Promise<NamespacePath> {
    const text = quote(dest.text);
    if (dest.trailingSlash || dest.segments.length === 0) {
      const found = await lookup(root, dest).catch(absent(`MFS destination directory ${text} does not exist`));
      if (!(found instanceof Folder)) throw failure("NOT_A_DIRECTORY", { path: `MFS destination ${text}` });
      return entryOf(dest, name);
    }
    if (this.#any)
      throw new NodeError("NOT_A_DIRECTORY", `MFS destination is a file: only one entry can be copied to ${text}`);
    const above = parentOf(dest);
    await lookup(root, above).catch(absent(`MFS destination parent ${text} ${quote(above.text)} does not exist`));
    return dest;
  }
}

/** Adds a prefix to the texts of the node's failures. */
async function withPrefix(what: string, run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    throw reworded(error, `${what}${error.message}`);
  }
}

const absent = (what: string) => (error: unknown) => {
  if (!(error instanceof NodeError)) throw error;
  throw reworded(error, `${what}: ${error.message}`);
};
