/** Work on files and directories of MFS. */

import { digest, directory, file, pinsAmong } from "#test/endurance/crash/items.ts";
import type { Model, Values } from "#test/endurance/crash/model.ts";
import { type CrashWorks, pick, type Weighted } from "#test/endurance/crash/works.ts";
import type { RpcServer } from "#test/support/rpc_server.ts";
import { noise } from "./storage.ts";

const folders = ["/a", "/b", "/c", "/d"];
const names = ["0", "1", "2", "3", "4", "5"];

/** Digest of an empty file. */
const empty = digest(new Uint8Array());

const anyFolder = () => pick(folders) as string;
const anyPath = () => `${anyFolder()}/${pick(names)}`;
const folderOf = (path: string) => path.slice(0, path.lastIndexOf("/"));

/**
 * Returns a folder and everything below it, or undefined if a pending change affects some of it.
 */
function free(model: Model, folder: string): string[] | undefined {
  const all = [folder, ...names.map((name) => `${folder}/${name}`)];
  return all.every((path) => model.isFree(file(path))) ? all.filter((path) => model.get(file(path))) : undefined;
}

/** Paths of files that no pending change affects. */
const files = (model: Model) =>
  model
    .among(file("/"))
    .filter((name) => model.get(name) !== directory)
    .map((name) => name.slice(file("").length));

class Namespace {
  readonly #works: CrashWorks;
  readonly #model: Model;
  /** Bytes of files that were written here, by digest. */
  readonly #bodies = new Map<string, Buffer>();

  constructor(works: CrashWorks) {
    this.#works = works;
    this.#model = works.model;
  }

  /**
   * Returns the values that a new entry makes, and the items on which it relies. Undefined if a
   * pending change affects its path.
   */
  #entry(path: string, value: string): readonly [Values, readonly string[]] | undefined {
    const folder = file(folderOf(path));
    if (!this.#model.isFree(file(path))) return undefined;
    if (this.#model.get(folder) === directory) {
      return this.#model.isSteady(folder) ? [{ [file(path)]: value }, [folder]] : undefined;
    }
    return this.#model.isFree(folder) ? [{ [folder]: directory, [file(path)]: value }, []] : undefined;
  }

  /** Writes a new file, or replaces one. */
  async write(server: RpcServer): Promise<void> {
    const path = anyPath();
    await this.#put(server, path, noise(700_000), { truncate: "true", create: "true", parents: "true" });
  }

  /** Writes into an existing file, also beyond its end. */
  async overwrite(server: RpcServer): Promise<void> {
    const path = pick(files(this.#model));
    if (path === undefined) return;
    const before = this.#bodies.get(this.#model.get(file(path)) ?? "");
    if (before === undefined) return;
    const offset = Math.floor(Math.random() * before.length * 1.2);
    const data = noise(100_000);
    const after = Buffer.alloc(Math.max(before.length, offset + data.length));
    before.copy(after);
    data.copy(after, offset);
    await this.#put(server, path, data, { offset: String(offset) }, after);
  }

  async #put(server: RpcServer, path: string, data: Buffer, how: Record<string, string>, after = data): Promise<void> {
    const entry = this.#entry(path, digest(after));
    if (entry === undefined) return;
    const [values, relies] = entry;
    this.#bodies.set(digest(after), after);
    // A change that is not flushed may be lost until another one is flushed.
    const flush = Math.random() < 0.95;
    const query = { ...how, arg: path, flush: String(flush) };
    const run = async () => (await this.#works.does(server, "files/write", query, { parts: { data } })) && flush;
    // The file is created before its bytes are read.
    const way = this.#model.get(file(path)) === undefined ? { ...values, [file(path)]: empty } : undefined;
    await this.#model.change(values, run, { relies, way });
    this.#forget();
  }

  #forget(): void {
    const known = new Set(files(this.#model).map((path) => this.#model.get(file(path))));
    if (this.#bodies.size < 200) return;
    for (const body of this.#bodies.keys()) if (!known.has(body)) this.#bodies.delete(body);
  }

  async makeFolder(server: RpcServer): Promise<void> {
    const path = anyFolder();
    if (!this.#model.isFree(file(path)) || this.#model.get(file(path)) !== undefined) return;
    await this.#model.change({ [file(path)]: directory }, () => this.#works.does(server, "files/mkdir", { arg: path }));
  }

  /** Moves a file, possibly over another one. */
  async move(server: RpcServer): Promise<void> {
    const from = pick(files(this.#model).filter((path) => this.#model.isFree(file(path))));
    const to = anyPath();
    const value = from && this.#model.get(file(from));
    const entry = value === undefined ? undefined : this.#entry(to, value);
    if (from === undefined || from === to || entry === undefined || this.#model.get(file(folderOf(to))) === undefined) {
      return;
    }
    const [values, relies] = entry;
    await this.#model.change(
      { ...values, [file(from)]: undefined },
      () => this.#works.does(server, "files/mv", pair(from, to)),
      { relies: [...relies, file(folderOf(from))] },
    );
  }

  /** Moves a folder with everything below it to a path that does not exist. */
  async moveFolder(server: RpcServer): Promise<void> {
    const from = anyFolder();
    const to = anyFolder();
    const below = free(this.#model, from);
    const there = free(this.#model, to);
    if (from === to || below?.includes(from) !== true || there === undefined || there.length > 0) return;
    const values = below.flatMap((path) => [
      [file(path), undefined],
      [file(`${to}${path.slice(from.length)}`), this.#model.get(file(path))],
    ]);
    await this.#model.change(Object.fromEntries(values), () => this.#works.does(server, "files/mv", pair(from, to)));
  }

  /** Copies pinned content, or another file, to a path that does not exist. */
  async copy(server: RpcServer): Promise<void> {
    const { contents } = this.#model;
    const to = anyPath();
    const path = pick(files(this.#model));
    const cid = pick(
      pinsAmong(this.#model).filter(
        (cid) => contents.get(cid)?.command === "cat" && contents.get(cid)?.below === undefined,
      ),
    );
    const outside = Math.random() < 0.5;
    const source = outside ? cid && `/ipfs/${cid}` : path;
    const value = outside ? contents.get(cid ?? "")?.digest : path && this.#model.get(file(path));
    const entry = value === undefined ? undefined : this.#entry(to, value);
    if (source === undefined || source === to || entry === undefined) return;
    if (this.#model.get(file(to)) !== undefined || this.#model.get(file(folderOf(to))) === undefined) return;
    const [values, relies] = entry;
    const used = outside ? relies : [...relies, file(source), file(folderOf(source))];
    // The pin may have been removed, and the content collected.
    const run = () => this.#works.does(server, "files/cp", pair(source, to), { mayFail: outside });
    await this.#model.change(values, run, { relies: used });
  }

  async remove(server: RpcServer): Promise<void> {
    const path = pick(files(this.#model).filter((path) => this.#model.isFree(file(path))));
    if (path === undefined) return;
    const run = () => this.#works.does(server, "files/rm", { arg: path });
    await this.#model.change({ [file(path)]: undefined }, run, { relies: [file(folderOf(path))] });
  }

  async removeFolder(server: RpcServer): Promise<void> {
    const path = anyFolder();
    const below = free(this.#model, path);
    if (below?.includes(path) !== true) return;
    const values = Object.fromEntries(below.map((each) => [file(each), undefined]));
    await this.#model.change(values, () => this.#works.does(server, "files/rm", { arg: path, recursive: "true" }));
  }
}

const pair = (from: string, to: string) =>
  [
    ["arg", from],
    ["arg", to],
  ] as const;

export function namespaceWorks(works: CrashWorks): Weighted {
  const namespace = new Namespace(works);
  return [
    [14, (server) => namespace.write(server)],
    [6, (server) => namespace.overwrite(server)],
    [4, (server) => namespace.makeFolder(server)],
    [8, (server) => namespace.move(server)],
    [4, (server) => namespace.moveFolder(server)],
    [7, (server) => namespace.copy(server)],
    [5, (server) => namespace.remove(server)],
    [2, (server) => namespace.removeFolder(server)],
  ];
}
