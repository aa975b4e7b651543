/** The operations of the /ipns mount that change files. */

import { Folder } from "../../content/mfs/folder.ts";
import { linksIn } from "../../content/mfs/list.ts";
import { lookup } from "../../content/mfs/lookup.ts";
import { cidAt, makeDirectory, move, remove } from "../../content/mfs/operations.ts";
import { buildNode } from "../../content/unixfs/build.ts";
import { encodeUnixfs } from "../../formats/unixfs/format.ts";
import { textBytes } from "../../util/byte_text.ts";
import { type Changes, type EntryName, FuseError } from "../fuse/file_system.ts";
import type { Attributes, NewAttributes } from "../fuse/wire.ts";
import type { FileWrites } from "./file_writes.ts";
import { keyOf } from "./name_node.ts";
import { asFuseError, type NameDeps, type NameTree, type TreeLocation } from "./name_tree.ts";

export class IpnsChanges implements Changes {
  readonly #deps: NameDeps;
  readonly #tree: NameTree;
  readonly #writes: FileWrites;

  constructor(deps: NameDeps, tree: NameTree, written: FileWrites) {
    this.#deps = deps;
    this.#tree = tree;
    this.#writes = written;
  }

  create(parent: number, name: string, signal: AbortSignal): Promise<Attributes> {
    return this.#make({ parent, name }, signal, ({ tree, path }) => this.#writes.create(tree, path, signal));
  }

  makeDirectory(parent: number, name: string, signal: AbortSignal): Promise<Attributes> {
    return this.#make({ parent, name }, signal, ({ tree, path }) =>
      makeDirectory(tree.files, path, { ...tree.changing, signal, parents: false, settings: undefined }),
    );
  }

  makeSymlink(parent: number, name: string, target: string, signal: AbortSignal): Promise<Attributes> {
    const data = encodeUnixfs({ type: "Symlink", data: textBytes(target) });
    return this.#make({ parent, name }, signal, ({ tree: { files, changing }, path: { segments } }) =>
      files.change({ ...changing, signal }, async (root) => {
        const folder = await lookup(root, { segments: segments.slice(0, -1) });
        if (!(folder instanceof Folder)) throw new FuseError("ENOTDIR");
        const built = await buildNode({ data, links: [] }, folder.settings, (block) => files.blocks.put([block]));
        await folder.add({ name, ...built });
      }),
    );
  }

  remove(parent: number, name: string, kind: "file" | "directory", signal: AbortSignal): Promise<void> {
    return this.#writes.exclusively([{ parent, name }], signal, async () => {
      const location = this.#tree.locate({ parent, name });
      await this.#removable(location, name, { kind, signal });
      await this.#remove(location, signal);
      this.#tree.unlink(location.above, name);
      location.tree.changed();
    });
  }

  rename(
    from: EntryName,
    to: EntryName,
    { replace, signal }: { readonly replace: boolean; readonly signal: AbortSignal },
  ): Promise<void> {
    const tree = this.#tree;
    return this.#writes.exclusively([from, to], signal, async () => {
      const source = tree.locate(from);
      const dest = tree.locate(to);
      if (source.tree !== dest.tree) throw new FuseError("EXDEV");
      if (source.path.text === dest.path.text) return;
      const { kind } = await tree.find(source.above, from.name, signal);
      const there = await tree.find(dest.above, to.name, signal).catch(() => undefined);
      if (there !== undefined) {
        if (!replace) throw new FuseError("EEXIST");
        await this.#removable(dest, to.name, { kind: kind === "directory" ? "directory" : "file", signal });
        // A file is replaced atomically. A directory would be moved into the existing one, so that
        // is removed first.
        if (kind === "directory") await this.#remove(dest, signal);
      }
      await asFuseError(move(source.tree.files, source.path, dest.path, { ...source.tree.changing, signal }));
      tree.unlink(dest.above, to.name);
      const node = tree.nodes.find(keyOf(source.above, from.name));
      if (node !== undefined) {
        node.parent = dest.above;
        node.name = to.name;
        tree.nodes.rekey(node.id, keyOf(dest.above, to.name));
      }
      source.tree.changed();
    });
  }

  resize(id: number, size: number, signal: AbortSignal): Promise<void> {
    return this.#writes.resize(this.#tree.nodes.get(id), size, signal);
  }

  setModeAndTime(id: number, given: Pick<NewAttributes, "mode" | "mtime">, signal: AbortSignal): Promise<void> {
    return this.#writes.setModeAndTime(this.#tree.nodes.get(id), given, signal);
  }

  write(id: number, offset: number, bytes: Uint8Array): Promise<void> {
    return this.#writes.write(this.#tree.nodes.get(id), offset, bytes);
  }

  async settle(id: number, { durable }: { readonly durable: boolean }): Promise<void> {
    const node = this.#tree.nodes.get(id);
    await this.#writes.settle(node);
    const { failure } = node;
    node.failure = undefined;
    if (failure !== undefined) throw failure;
    if (durable) await node.tree?.files.commit();
  }

  async #make(
    entry: EntryName,
    signal: AbortSignal,
    make: (location: TreeLocation) => Promise<void>,
  ): Promise<Attributes> {
    const location = this.#tree.locate(entry);
    await asFuseError(make(location));
    location.tree.changed();
    return this.#tree.register(location.above, entry.name, await this.#tree.find(location.above, entry.name, signal));
  }

  #remove({ tree, path }: TreeLocation, signal: AbortSignal): Promise<void> {
    return asFuseError(remove(tree.files, path, { ...tree.changing, signal, recursive: true, force: false }));
  }

  /** @throws FuseError if the entry is of the other kind, or not empty */
  async #removable(
    { above, tree, path }: TreeLocation,
    name: string,
    { kind, signal }: { readonly kind: "file" | "directory"; readonly signal: AbortSignal },
  ): Promise<void> {
    const found = await this.#tree.find(above, name, signal);
    if ((found.kind === "directory") !== (kind === "directory")) {
      throw new FuseError(kind === "directory" ? "ENOTDIR" : "EISDIR");
    }
    if (kind === "file") return;
    const cid = await cidAt(tree.files, path, { signal });
    const read = this.#deps.reader({ signal });
    for await (const _ of linksIn(cid, await read(cid), read)) throw new FuseError("ENOTEMPTY");
  }
}
