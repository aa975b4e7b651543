/** Adding trees of files: the events that the reference sends, in its order (storage section 3, "add"). */
import type { PbLink } from "../dag/pb.ts";
import { compareNames } from "../dag/pb.ts";
import { gather } from "../gather.ts";
import type { BlockSink, Built } from "./build.ts";
import { buildDirectory, duplicateEntry } from "./directory.ts";
import { type FileSettings, importFile, importSymlink } from "./import_file.ts";

/** What comes in: directories before or without their files, in any order within one top-level entry. */
export interface AddEntry {
  /** Components with `/` between them; "" for a file without a name. */
  readonly path: string;
  readonly kind: "file" | "directory" | "symlink";
  /** A symlink's target; nothing for directories. Read before the next entry is asked for. */
  readonly body: AsyncIterable<Uint8Array>;
  /** Path or URL of a file that has the same bytes and may be referred to. */
  readonly place?: string | undefined;
}

export interface AddSettings extends FileSettings {
  readonly sharded: boolean;
  /** Put everything into one directory without a name. */
  readonly wrap: boolean;
  readonly progress: boolean;
}

export interface AddEvent {
  readonly name: string;
  readonly kind: AddEntry["kind"] | "progress";
  /** Of what was built; missing in progress. */
  readonly built?: Built;
  /** Progress: bytes of the file so far. */
  readonly bytes?: number;
  /** The last event of a top-level entry, or of the wrapper: all that is below it was built. */
  readonly root?: boolean;
}

/** Bytes between two lines of progress. */
const progressStep = 262_144;

type Tree = Map<string, Tree | Built>;
const isTree = (node: Tree | Built): node is Tree => node instanceof Map;

/**
 * Imports entries and yields events.
 *
 * @throws NodeError when an entry cannot have its name; what was yielded before is stored
 */
export async function* addTree(
  entries: AsyncIterable<AddEntry>,
  settings: AddSettings,
  sink: BlockSink,
): AsyncGenerator<AddEvent, void, undefined> {
  let tree: Tree = new Map();
  /** Name of the top-level directory that `tree` holds, when nothing is wrapped. */
  let open: string | undefined;

  async function* finish(): AsyncGenerator<AddEvent, void, undefined> {
    if (!settings.wrap && open === undefined) return;
    const root = settings.wrap ? tree : (tree.get(open as string) as Tree);
    yield* directories(root, settings.wrap ? "" : (open as string), settings, sink);
    tree = new Map();
    open = undefined;
  }

  for await (const entry of entries) {
    const [top = "", ...below] = entry.path.split("/");
    const single = below.length === 0;
    const inside = settings.wrap || (top === open && !single);
    if (!inside) yield* finish();
    if (entry.kind === "directory") {
      makeTree(tree, entry.path.split("/"));
      if (!settings.wrap) open = top;
      continue;
    }
    const built = yield* importEntry(entry, settings, sink);
    const name = entry.path === "" ? built.cid.toString() : entry.path;
    if (settings.wrap || !single) {
      put(tree, name.split("/"), built);
      if (!settings.wrap) open = top;
    }
    yield { name, kind: entry.kind, built, root: !settings.wrap && single };
  }
  yield* finish();
}

async function* importEntry(
  { path, kind, body, place }: AddEntry,
  settings: AddSettings,
  sink: BlockSink,
): AsyncGenerator<AddEvent, Built, undefined> {
  if (kind === "symlink") return importSymlink(await gather(body), settings, sink);
  if (!settings.progress) return importFile(body, settings, sink, place);
  const meter = new Meter(body);
  const importing = importFile(meter.source(), settings, sink, place);
  importing.catch(() => {});
  for await (const bytes of meter.steps(importing)) yield { name: path, kind: "progress", bytes };
  return importing;
}

/** Counts bytes as they pass, and tells those who wait for the next step. */
class Meter {
  readonly #body: AsyncIterable<Uint8Array>;
  readonly #due: number[] = [];
  #wake: () => void = () => {};

  constructor(body: AsyncIterable<Uint8Array>) {
    this.#body = body;
  }

  async *source(): AsyncGenerator<Uint8Array, void, undefined> {
    let total = 0;
    let told = 0;
    for await (const piece of this.#body) {
      let rest = piece;
      // Cut where a line is due, so that its number does not depend on how the bytes came.
      for (let due = told + progressStep - total; rest.length >= due; due = progressStep) {
        yield rest.subarray(0, due);
        rest = rest.subarray(due);
        total += due;
        told = total;
        this.#tell(total);
      }
      total += rest.length;
      if (rest.length > 0) yield rest;
    }
    this.#tell(total);
  }

  #tell(total: number): void {
    this.#due.push(total);
    this.#wake();
  }

  /** Totals to report until `work` is over. @throws what the work throws */
  async *steps(work: Promise<unknown>): AsyncGenerator<number, void, undefined> {
    let over = false;
    const ended = work.then(() => {
      over = true;
    });
    ended.catch(() => {});
    for (;;) {
      for (let total = this.#due.shift(); total !== undefined; total = this.#due.shift()) yield total;
      if (over) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await Promise.race([ended, promise]);
    }
  }
}

function makeTree(root: Tree, path: readonly string[]): Tree {
  let tree = root;
  for (const name of path) {
    if (name === "") continue;
    const inner = tree.get(name) ?? new Map();
    if (!isTree(inner)) throw duplicateEntry();
    tree.set(name, inner);
    tree = inner;
  }
  return tree;
}

function put(root: Tree, path: readonly string[], built: Built): void {
  const tree = makeTree(root, path.slice(0, -1));
  const name = path.at(-1) as string;
  if (tree.has(name)) throw duplicateEntry();
  tree.set(name, built);
}

/** Depth first by name, children before parents, the root last. */
async function* directories(
  root: Tree,
  path: string,
  settings: AddSettings,
  sink: BlockSink,
): AsyncGenerator<AddEvent, void, undefined> {
  async function* build(tree: Tree, name: string): AsyncGenerator<AddEvent, Built, undefined> {
    const links: PbLink[] = [];
    const names = [...tree.keys()].sort(compareNames);
    for (const child of names) {
      const node = tree.get(child) as Tree | Built;
      const built: Built = isTree(node) ? yield* build(node, name === "" ? child : `${name}/${child}`) : node;
      links.push({ name: child, size: built.size, cid: built.cid });
    }
    const built = await buildDirectory(links, settings, sink);
    yield { name, kind: "directory", built, root: tree === root };
    return built;
  }
  yield* build(root, path);
}
