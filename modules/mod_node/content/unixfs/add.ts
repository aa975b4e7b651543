/** Adds trees of files. The events are those of the reference's `add`, in the same order. */
import { tmpdir } from "node:os";
import type { ModeAndTime } from "../../formats/unixfs/format.ts";
import { unixMode } from "../../formats/unixfs/mode.ts";
import { AbortableSources } from "../../util/async/abortable.ts";
import { readUpTo } from "../../util/async/read_all.ts";
import { TimeSlices } from "../../util/async/steps.ts";
import { failure } from "../../util/errors.ts";
import type { BlockSink, Built } from "./build.ts";
import type { DirectorySettings } from "./directory.ts";
import { DirectoryTree } from "./directory_tree.ts";
import { type FileSettings, importFile, importSymlink } from "./import_file.ts";

/**
 * An entry to add. Its mode is in the format of Go. Directories may come before their files or not
 * at all, in any order within one top-level entry.
 */
export interface AddEntry extends ModeAndTime {
  /**
   * Components separated by `/`; "" for a file without a name. A directory with the path "" is a
   * top-level directory without a name, which contains all further entries.
   */
  readonly path: string;
  readonly kind: "file" | "directory" | "symlink";
  /**
   * The content of a file or the target of a symlink; no bytes for directories. It is read before
   * the next entry is requested.
   */
  readonly body: AsyncIterable<Uint8Array>;
  /** Path or URL of a file with the same bytes, which the filestore may refer to. */
  readonly backing?: string | undefined;
}

export interface AddSettings extends FileSettings, DirectorySettings {
  /**
   * Mode and time of every file and directory, also of directories without an entry. Symlinks get
   * the time only.
   */
  readonly facts?: ModeAndTime | undefined;
  /** Whether an entry keeps its own mode or time if `facts` do not set it. */
  readonly preserve?: { readonly mode: boolean; readonly mtime: boolean } | undefined;
  /** Whether files must have a `backing`, or whether it is ignored. By default it is optional. */
  readonly backing?: "required" | "ignored" | undefined;
  /** Leave out empty directories, except at the top level. */
  readonly noEmpty?: boolean | undefined;
  /** Put everything into one directory without a name. */
  readonly wrap: boolean;
  readonly progress: boolean;
}

export interface AddEvent {
  readonly name: string;
  readonly kind: AddEntry["kind"] | "progress";
  /** The node that was built; undefined for progress events. */
  readonly built?: Built;
  /** For progress events: bytes of the file so far. */
  readonly bytes?: number;
  /**
   * Whether this is the last event of a top-level entry or of the wrapper: everything below it was
   * built.
   */
  readonly root?: boolean;
  /** Whether the entry had no name. Then `name` is its CID, or "" for a directory. */
  readonly unnamed?: boolean;
  /** Mode and time of the top-level entry before import, whether they are stored or not. */
  readonly said?: ModeAndTime | undefined;
}

/** Number of bytes between two progress events. */
const PROGRESS_STEP = 262_144;

/**
 * Imports entries and yields events. Entries of directories wait in `tree`, which is empty before
 * and after. `signal` stops waiting for an entry or its bytes.
 *
 * @throws NodeError when an entry cannot have its name; the signal's reason. Blocks of earlier
 * events are stored
 */
export async function* addTree(
  entries: AsyncIterable<AddEntry>,
  settings: AddSettings,
  sink: BlockSink,
  tree = new DirectoryTree(settings.sharded, tmpdir()),
  signal?: AbortSignal,
): AsyncGenerator<AddEvent, void, undefined> {
  /**
   * The directory that is built next: a top-level one, or the one without a name that contains all
   * other entries.
   */
  let open = settings.wrap ? "" : undefined;
  let said: ModeAndTime | undefined;

  async function* finish(): AsyncGenerator<AddEvent, void, undefined> {
    for await (const { path, built, last } of tree.build(open as string, settings, sink)) {
      yield { name: path, kind: "directory", built, root: last, unnamed: path === "", said };
    }
    await tree.clear();
    open = undefined;
  }

  // Many small files may arrive at once without any wait, so other work gets its turn from time to
  // time.
  const slices = new TimeSlices();
  const sources = new AbortableSources(signal);
  try {
    const source = sources.read(entries);
    for await (const entry of settings.noEmpty ? withoutEmpty(source, settings) : source) {
      const turn = slices.due();
      if (turn !== undefined) await turn;
      requireEntry(entry, settings);
      if (open === "") {
        if (entry.kind === "directory" && entry.path === "")
          throw failure("INPUT_INVALID", { reason: "no path given to Mkdir" });
      } else {
        const slash = entry.path.indexOf("/");
        const top = slash < 0 ? entry.path : entry.path.slice(0, slash);
        const single = slash < 0;
        if (top !== open || single) {
          if (open !== undefined) yield* finish();
          said = single ? { mode: entry.mode, mtime: entry.mtime } : undefined;
        }
        if (!single || entry.kind === "directory") open = top;
      }
      if (entry.kind === "directory") {
        await tree.open(entry.path, factsOf(entry, settings));
        continue;
      }
      const body = sources.read(entry.body);
      const built =
        settings.progress && entry.kind === "file"
          ? yield* importWithProgress({ ...entry, body }, settings, sink, { said, signal })
          : await importEntry({ ...entry, body }, settings, sink, signal);
      const name = entry.path === "" ? built.cid.toString() : entry.path;
      if (open !== undefined) await tree.put(name, built);
      yield { name, kind: entry.kind, built, root: open === undefined, unnamed: entry.path === "", said };
    }
    if (open !== undefined) yield* finish();
  } finally {
    sources.end();
    await tree.clear();
  }
}

/**
 * Skips empty directories, except at the top level. A later entry can then use the name of a
 * skipped directory, as in Kubo.
 */
async function* withoutEmpty(
  entries: AsyncIterable<AddEntry>,
  settings: AddSettings,
): AsyncGenerator<AddEntry, void, undefined> {
  let isBelowUnnamed = settings.wrap;
  let waiting: AddEntry | undefined;
  for await (const entry of entries) {
    requireEntry(entry, settings);
    const { path, kind } = entry;
    if (waiting !== undefined && (waiting.path === "" || path.startsWith(`${waiting.path}/`))) yield waiting;
    waiting = undefined;
    if (kind !== "directory") yield entry;
    else if (isBelowUnnamed || path.includes("/")) waiting = entry;
    else {
      isBelowUnnamed = path === "";
      yield entry;
    }
  }
}

/**
 * Checks an entry, because those of JavaScript programs were not checked by a compiler. @throws
 * NodeError that names what is missing
 */
function requireEntry({ path, kind, body, backing }: Partial<AddEntry>, settings: AddSettings): void {
  if (typeof path !== "string") throw failure("INPUT_INVALID", { reason: "an entry needs a path" });
  if (kind !== "file" && kind !== "directory" && kind !== "symlink") {
    throw failure("INPUT_INVALID", { reason: `the entry ${path} needs a kind: file, directory or symlink` });
  }
  if (settings.backing === "required" && kind === "file" && (backing ?? "") === "") {
    throw failure("INPUT_INVALID", { reason: "missing file path or URL, can't create filestore reference" });
  }
  if (kind === "directory" || typeof body?.[Symbol.asyncIterator] === "function") return;
  throw failure("INPUT_INVALID", { reason: `the entry ${path} needs a body: an async iterable of bytes` });
}

/** Returns mode and time to store for an entry; undefined if there are none. */
function factsOf(entry: AddEntry, { facts, preserve }: AddSettings): ModeAndTime | undefined {
  if (preserve === undefined) return facts;
  const mode = facts?.mode ?? (preserve.mode ? unixMode(entry.mode ?? 0) : undefined);
  const mtime = facts?.mtime ?? (preserve.mtime ? entry.mtime : undefined);
  return mode === undefined && mtime === undefined ? undefined : { mode, mtime };
}

async function importEntry(
  entry: AddEntry,
  settings: AddSettings,
  sink: BlockSink,
  signal: AbortSignal | undefined,
): Promise<Built> {
  const facts = factsOf(entry, settings);
  if (entry.kind === "symlink") return importSymlink(await readUpTo(entry.body), settings, sink, facts?.mtime);
  const backing = settings.backing === "ignored" ? undefined : entry.backing;
  return importFile(entry.body, settings, sink, { backing, facts, signal });
}

/** Imports a file and yields events of its progress. */
async function* importWithProgress(
  entry: AddEntry,
  settings: AddSettings,
  sink: BlockSink,
  { said, signal }: { readonly said: ModeAndTime | undefined; readonly signal: AbortSignal | undefined },
): AsyncGenerator<AddEvent, Built, undefined> {
  const meter = new ProgressMeter(entry.body);
  const importing = importEntry({ ...entry, body: meter.source() }, settings, sink, signal);
  importing.catch(() => {});
  for await (const bytes of meter.steps(importing)) {
    yield { name: entry.path, kind: "progress", bytes, said };
  }
  return importing;
}

/** Counts bytes as they pass, and reports progress at each step. */
class ProgressMeter {
  readonly #body: AsyncIterable<Uint8Array>;
  readonly #due: number[] = [];
  #wake: () => void = () => {};

  constructor(body: AsyncIterable<Uint8Array>) {
    this.#body = body;
  }

  async *source(): AsyncGenerator<Uint8Array, void, undefined> {
    let total = 0;
    let reported = 0;
    for await (const piece of this.#body) {
      let rest = piece;
      // Pieces are split where an event is due, so that the number of events does not depend on the
      // pieces.
      for (let due = reported + PROGRESS_STEP - total; rest.length >= due; due = PROGRESS_STEP) {
        yield rest.subarray(0, due);
        rest = rest.subarray(due);
        total += due;
        reported = total;
        this.#report(total);
      }
      total += rest.length;
      if (rest.length > 0) yield rest;
    }
    this.#report(total);
  }

  #report(total: number): void {
    this.#due.push(total);
    this.#wake();
  }

  /** Yields the totals to report, until `work` has ended. @throws what `work` rejects with */
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
