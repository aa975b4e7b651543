/** The directories of an add. Stores their entries until they are built. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { CID } from "multiformats/cid";
import { varintLength, writeVarint } from "../../formats/protobuf/varint.ts";
import { decodeUnixfs, encodeUnixfs, type ModeAndTime } from "../../formats/unixfs/format.ts";
import { ExternalSortedMap, type ValueCodec } from "../../storage/external_sorted_map.ts";
import { failure } from "../../util/errors.ts";
import type { BlockSink, Built } from "./build.ts";
import { buildOrdered, buildPlain, type DirectorySettings, duplicateEntry, entryKey } from "./directory.ts";
import type { Sharding } from "./sharding.ts";

/** Number of directories after which other work of the process gets its turn. */
const TURN_STEPS = 64;

/** A directory that is not built yet. */
interface OpenDirectory {
  readonly number: number;
  readonly facts?: ModeAndTime | undefined;
}

type TreeEntry = Built | OpenDirectory;

const isOpen = (entry: TreeEntry | undefined): entry is OpenDirectory => entry !== undefined && "number" in entry;

const nothing = new Uint8Array();
/** Flag in the first byte of a directory that is not built yet and has mode or time. */
const WITH_FACTS = 0x80;

function factsBytes({ facts }: OpenDirectory): Uint8Array {
  return facts === undefined ? nothing : encodeUnixfs({ ...facts, type: "Directory" });
}

function factsIn(bytes: Uint8Array): ModeAndTime {
  const { mode, mtime } = decodeUnixfs(bytes);
  return { mode, mtime };
}

/**
 * Encodes a built entry as its size and its CID, and a directory that is not built yet as its
 * number, followed by a UnixFS message if it has mode or time.
 */
const form: ValueCodec<TreeEntry> = {
  encode(entry) {
    const [number, rest] = isOpen(entry) ? [entry.number, factsBytes(entry)] : [entry.size, entry.cid.bytes];
    const bytes = Buffer.allocUnsafe(1 + varintLength(number) + rest.length);
    bytes[0] = varintLength(number) | (isOpen(entry) && rest.length > 0 ? WITH_FACTS : 0);
    bytes.set(rest, writeVarint(bytes, 1, number));
    return bytes;
  },
  decode(bytes) {
    const head = bytes[0] as number;
    const from = 1 + (head & ~WITH_FACTS);
    let number = 0;
    for (let at = from - 1; at >= 1; at -= 1) number = number * 128 + ((bytes[at] as number) & 0x7f);
    if (from === bytes.length) return { number };
    const rest = bytes.subarray(from);
    return (head & WITH_FACTS) === 0 ? { size: number, cid: CID.decode(rest) } : { number, facts: factsIn(rest) };
  },
};

const plainRoot: OpenDirectory = { number: 0 };

/**
 * Each directory has three lists: built entries by sort key, and directories that are not built yet
 * by name. If the directory is too large for one block, the third list has the built entries in the
 * order of a HAMT.
 */
const builtIn = ({ number }: OpenDirectory): number => number * 3;
const openIn = ({ number }: OpenDirectory): number => number * 3 + 1;
const hashedIn = ({ number }: OpenDirectory): number => number * 3 + 2;

/** How directories are built. */
export interface TreeSettings extends DirectorySettings {
  /** Mode and time of directories without their own. */
  readonly facts?: ModeAndTime | undefined;
}

export interface BuiltDirectory {
  readonly path: string;
  readonly built: Built;
  /** Whether this is the requested directory. It comes after everything below it. */
  readonly last: boolean;
}

/** Needs little memory, however many entries it has: the rest is in files below `folder`. */
export class DirectoryTree {
  readonly #sharded: boolean;
  readonly #entries: ExternalSortedMap<TreeEntry>;
  #directories = 1;
  #root = plainRoot;
  /** The directory of the last entry. The next entry often belongs to it, too. */
  #path = "";
  #directory = plainRoot;

  constructor(sharded: Sharding, folder: string) {
    this.#sharded = sharded === true;
    this.#entries = new ExternalSortedMap(folder, form);
  }

  /**
   * Creates a directory and its parents, unless they exist. @throws NodeError if an entry of
   * another kind has the name
   */
  async open(path: string, facts?: ModeAndTime): Promise<OpenDirectory> {
    if (facts !== undefined) return this.#openWith(path, facts);
    if (path === this.#path) return this.#directory;
    // A directory below the last one is found from there. So a walk down a deep tree visits each
    // level once.
    const isBelow = this.#path !== "" && path.startsWith(`${this.#path}/`);
    let directory = isBelow ? this.#directory : this.#root;
    const rest = isBelow ? path.slice(this.#path.length) : path;
    for (const name of rest.split("/")) if (name !== "") directory = await this.#openIn(directory, name);
    this.#path = path;
    this.#directory = directory;
    return directory;
  }

  async #openWith(path: string, facts: ModeAndTime): Promise<OpenDirectory> {
    const directory = path === "" ? { ...plainRoot, facts } : await this.#setFacts(path, facts);
    if (path === "") this.#root = directory;
    this.#path = path;
    this.#directory = directory;
    return directory;
  }

  async #setFacts(path: string, facts: ModeAndTime): Promise<OpenDirectory> {
    const slash = path.lastIndexOf("/");
    const above = await this.open(path.slice(0, Math.max(0, slash)));
    const name = path.slice(slash + 1);
    const { number } = await this.#openIn(above, name);
    const directory = { number, facts };
    await this.#entries.set(openIn(above), name, directory);
    return directory;
  }

  /** @throws NodeError if an entry of that name exists */
  async put(path: string, built: Built): Promise<void> {
    const slash = path.lastIndexOf("/");
    const directory = await this.open(path.slice(0, Math.max(0, slash)));
    const name = path.slice(slash + 1);
    const key = entryKey(name, this.#sharded);
    const taken = this.#entries.get(builtIn(directory), key) ?? this.#entries.get(openIn(directory), name);
    if (taken !== undefined) throw duplicateEntry();
    await this.#entries.set(builtIn(directory), key, built);
  }

  /** Yields the CIDs of everything that was put and built since the tree was empty. */
  *cids(): Generator<CID, void, undefined> {
    for (const entry of this.#entries.values()) if (!isOpen(entry)) yield entry.cid;
  }

  /** Builds a directory and everything below it: depth first by name, children before parents. */
  async *build(path: string, settings: TreeSettings, sink: BlockSink): AsyncGenerator<BuiltDirectory> {
    const way = [this.#level(await this.open(path), path, "")];
    for (let level = way.at(-1), steps = 1; level !== undefined; level = way.at(-1), steps += 1) {
      if (steps % TURN_STEPS === 0) await nextTurn();
      const next = await level.below.next();
      if (next.done !== true) {
        const [name, directory] = next.value;
        way.push(this.#level(directory, level.path === "" ? name : `${level.path}/${name}`, name));
        continue;
      }
      way.pop();
      const above = way.at(-1);
      const built = await this.#buildOne(level.directory, settings, sink);
      if (above !== undefined) {
        await this.#entries.set(builtIn(above.directory), entryKey(level.name, this.#sharded), built);
      }
      yield { path: level.path, built, last: above === undefined };
    }
  }

  async #buildOne(directory: OpenDirectory, settings: TreeSettings, sink: BlockSink): Promise<Built> {
    const { sharded } = settings;
    const facts = directory.facts ?? settings.facts;
    const entries = this.#built(builtIn(directory));
    if (typeof sharded === "boolean") return buildOrdered(entries, { ...settings, sharded }, sink, facts);
    const plain = await buildPlain(entries, settings, sink, { facts, limits: sharded });
    if (plain !== undefined) return plain;
    const list = hashedIn(directory);
    for await (const page of this.#built(builtIn(directory))) {
      for (const [name, built] of page) await this.#entries.set(list, entryKey(name, true), built);
    }
    return buildOrdered(this.#built(list), { ...settings, sharded: true }, sink, facts);
  }

  /** Removes everything. The tree can be used again. */
  async clear(): Promise<void> {
    this.#directories = 1;
    this.#path = "";
    this.#root = plainRoot;
    this.#directory = plainRoot;
    await this.#entries.clear();
  }

  async #openIn(directory: OpenDirectory, name: string): Promise<OpenDirectory> {
    const found = this.#entries.get(openIn(directory), name);
    if (isOpen(found)) return found;
    if (this.#entries.get(builtIn(directory), entryKey(name, this.#sharded)) !== undefined) {
      throw failure("FILE_EXISTS");
    }
    const made: OpenDirectory = { number: this.#directories };
    this.#directories += 1;
    await this.#entries.set(openIn(directory), name, made);
    return made;
  }

  #level(directory: OpenDirectory, path: string, name: string) {
    return { directory, path, name, below: this.#directoriesIn(directory) };
  }

  async *#directoriesIn(
    directory: OpenDirectory,
  ): AsyncGenerator<readonly [name: string, directory: OpenDirectory], void, undefined> {
    for await (const page of this.#entries.pages(openIn(directory)))
      yield* page as readonly (readonly [string, OpenDirectory])[];
  }

  #built(list: number) {
    return this.#entries.pages(list) as AsyncGenerator<readonly (readonly [string, Built])[]>;
  }
}
