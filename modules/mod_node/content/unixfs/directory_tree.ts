/** The directories of an add: holds their entries until they are built. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { CID } from "multiformats/cid";
import { varintLength, writeVarint } from "../../formats/protobuf/varint.ts";
import { ExternalSortedMap, type ValueCodec } from "../../storage/external_sorted_map.ts";
import type { BlockSink, Built } from "./build.ts";
import { buildOrdered, type DirectorySettings, duplicateEntry, entryKey } from "./directory.ts";

/** Directories after which other work of the process gets its turn while they are built. */
const TURN_STEPS = 64;

/** The number of a directory that is not built yet. */
type Open = number;
type Entry = Built | Open;

const isOpen = (held: Entry | undefined): held is Open => typeof held === "number";

/** A size followed by a CID; a directory that is not built yet is a number only. */
const form: ValueCodec<Entry> = {
  encode(held) {
    const [number, cid] = isOpen(held) ? [held, new Uint8Array()] : [held.size, held.cid.bytes];
    const bytes = Buffer.allocUnsafe(1 + varintLength(number) + cid.length);
    bytes[0] = varintLength(number);
    bytes.set(cid, writeVarint(bytes, 1, number));
    return bytes;
  },
  decode(bytes) {
    const from = 1 + (bytes[0] as number);
    let number = 0;
    for (let at = from - 1; at >= 1; at -= 1) number = number * 128 + ((bytes[at] as number) & 0x7f);
    return from === bytes.length ? number : { size: number, cid: CID.decode(bytes.subarray(from)) };
  },
};

const root: Open = 0;

/** Each directory has two maps: built entries by sort key, and directories that are not built yet by name. */
const builtIn = (directory: Open): number => directory * 2;
const openIn = (directory: Open): number => directory * 2 + 1;

export interface BuiltDirectory {
  readonly path: string;
  readonly built: Built;
  /** The directory that was asked for, which comes after everything below it. */
  readonly last: boolean;
}

/** Takes little memory however many entries it has: the rest is in files below `folder`. */
export class DirectoryTree {
  readonly #sharded: boolean;
  readonly #entries: ExternalSortedMap<Entry>;
  #directories = 1;
  /** Where the last entry was put: the next one often goes there as well. */
  #path = "";
  #directory: Open = root;

  constructor(sharded: boolean, folder: string) {
    this.#sharded = sharded;
    this.#entries = new ExternalSortedMap(folder, form);
  }

  /** Makes a directory and its parents, unless they exist. @throws NodeError when something else has the name */
  async open(path: string): Promise<Open> {
    if (path === this.#path) return this.#directory;
    // A directory below the last one is found from there: a walk down a deep tree costs each level once.
    const isBelow = this.#path !== "" && path.startsWith(`${this.#path}/`);
    let directory = isBelow ? this.#directory : root;
    const rest = isBelow ? path.slice(this.#path.length) : path;
    for (const name of rest.split("/")) if (name !== "") directory = await this.#openIn(directory, name);
    this.#path = path;
    this.#directory = directory;
    return directory;
  }

  /** @throws NodeError when the name is taken */
  async put(path: string, built: Built): Promise<void> {
    const slash = path.lastIndexOf("/");
    const directory = await this.open(path.slice(0, Math.max(0, slash)));
    const name = path.slice(slash + 1);
    const key = entryKey(name, this.#sharded);
    const taken = this.#entries.get(builtIn(directory), key) ?? this.#entries.get(openIn(directory), name);
    if (taken !== undefined) throw duplicateEntry();
    await this.#entries.set(builtIn(directory), key, built);
  }

  /** CIDs of everything that was put and built since the tree was empty. */
  *cids(): Generator<CID, void, undefined> {
    for (const held of this.#entries.values()) if (!isOpen(held)) yield held.cid;
  }

  /** Builds a directory and everything below it: depth first by name, children before parents. */
  async *build(path: string, settings: DirectorySettings, sink: BlockSink): AsyncGenerator<BuiltDirectory> {
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
      const built = await buildOrdered(this.#built(level.directory), settings, sink);
      const above = way.at(-1);
      if (above !== undefined) {
        await this.#entries.set(builtIn(above.directory), entryKey(level.name, settings.sharded), built);
      }
      yield { path: level.path, built, last: above === undefined };
    }
  }

  /** Removes everything; the tree can be used again. */
  async clear(): Promise<void> {
    this.#directories = 1;
    this.#path = "";
    this.#directory = root;
    await this.#entries.clear();
  }

  async #openIn(directory: Open, name: string): Promise<Open> {
    const found = this.#entries.get(openIn(directory), name);
    if (isOpen(found)) return found;
    if (this.#entries.get(builtIn(directory), entryKey(name, this.#sharded)) !== undefined) throw duplicateEntry();
    const made = this.#directories;
    this.#directories += 1;
    await this.#entries.set(openIn(directory), name, made);
    return made;
  }

  #level(directory: Open, path: string, name: string) {
    return { directory, path, name, below: this.#directoriesIn(directory) };
  }

  async *#directoriesIn(directory: Open): AsyncGenerator<readonly [name: string, directory: Open], void, undefined> {
    for await (const page of this.#entries.pages(openIn(directory)))
      yield* page as readonly (readonly [string, Open])[];
  }

  #built(directory: Open) {
    return this.#entries.pages(builtIn(directory)) as AsyncGenerator<readonly (readonly [string, Built])[]>;
  }
}
