/** A repository: its objects, checked as they are read, and its snapshots. */
import { createHash } from "node:crypto";
import type { Backend } from "../backends/backend.ts";
import {
  type Entry,
  FORMAT,
  type Head,
  headName,
  type Named,
  objectName,
  objectPrefix,
  type Piece,
  type Snapshot,
  snapshotPrefix,
} from "./format.ts";
import { readSnapshot } from "./read_snapshot.ts";
import { newSeal, plainSeal, type Seal, sealOf } from "./seal.ts";

export interface OpenOptions {
  /** What encrypts it; a repository has it from the beginning, or never. */
  readonly secret?: Uint8Array | undefined;
  /** Makes the repository where there is none. */
  readonly make?: boolean;
}

/** Objects that are kept after they were read: pieces of one object follow each other. */
const MAX_KEPT = 4;
/** Characters of its hash in the name of a snapshot. */
const ID_HASH = 16;

/** @throws Error when there is none, it is of a later program, or the key is missing, wrong or too much */
export async function openRepository(
  backend: Backend,
  { secret, make = false }: OpenOptions = {},
): Promise<Repository> {
  const text = await backend.read(headName);
  if (text === undefined) {
    if (!make) throw new Error(`There is no backup in ${backend.name}`);
    return makeRepository(backend, secret);
  }
  const head = headOf(text);
  if (head === undefined) throw new Error(`${backend.name}: its ${headName} is not that of a backup, or damaged`);
  if (head.format > FORMAT) throw new Error(`${backend.name} was made by a later version of modhost: update this one`);
  const { encryption } = head;
  if (encryption === undefined) {
    if (secret === undefined) return new Repository(backend, plainSeal);
    throw new Error(
      `${backend.name} is not encrypted, and a key was given (backup_key_file): back up to another place, or without a key`,
    );
  }
  if (secret === undefined)
    throw new Error(
      `${backend.name} is encrypted: name the file of its key by --key-file, or the option backup_key_file`,
    );
  const seal = await sealOf(secret, encryption);
  if (seal === undefined) throw new Error(`${backend.name} is encrypted by another key than the one that was given`);
  return new Repository(backend, seal);
}

async function makeRepository(backend: Backend, secret: Uint8Array | undefined): Promise<Repository> {
  for await (const found of backend.list(""))
    throw new Error(`${backend.name} is not empty (${found}): a new backup begins in an empty place`);
  const kind = { kind: "modhost backup", format: FORMAT } as const;
  const { seal, encryption } = secret === undefined ? { seal: plainSeal } : await newSeal(secret);
  const head: Head = encryption === undefined ? kind : { ...kind, encryption };
  // Somebody else may have made it meanwhile, with another salt.
  if (!(await backend.create(headName, Buffer.from(`${JSON.stringify(head, undefined, 2)}\n`))))
    return openRepository(backend, { secret });
  await backend.sync();
  return new Repository(backend, seal);
}

function headOf(text: Buffer): Head | undefined {
  try {
    const head = JSON.parse(text.toString()) as Head;
    return head.kind === "modhost backup" && typeof head.format === "number" ? head : undefined;
  } catch {
    return undefined;
  }
}

export class Repository {
  readonly backend: Backend;
  readonly seal: Seal;
  readonly #kept = new Map<string, Buffer>();

  constructor(backend: Backend, seal: Seal) {
    this.backend = backend;
    this.seal = seal;
  }

  /** Stores an object under the hash of its content. */
  async writeObject(hash: string, content: Uint8Array, signal?: AbortSignal): Promise<void> {
    await this.backend.write(objectName(hash), this.seal.close(hash, content), signal);
  }

  /** @throws Error that names the object, when it is missing or damaged */
  async readObject(hash: string, signal?: AbortSignal): Promise<Buffer> {
    const name = objectName(hash);
    const stored = await this.backend.read(name, signal);
    if (stored === undefined) throw new DamagedError(name, "is missing");
    const content = opened(this.seal, hash, stored, name);
    if (this.seal.hash(content) !== hash) throw new DamagedError(name, "is damaged: its hash is another one");
    return content;
  }

  /** @throws Error as `readObject` */
  async readPiece([hash, length, object = hash, at = 0]: Piece, signal?: AbortSignal): Promise<Buffer> {
    const content = this.#kept.get(object) ?? (await this.readObject(object, signal));
    this.#kept.delete(object);
    this.#kept.set(object, content);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MAX_KEPT && oldest !== undefined) this.#kept.delete(oldest);
    const piece = content.subarray(at, at + length);
    if (piece.length !== length) throw new DamagedError(objectName(object), "is shorter than its snapshot says");
    return piece;
  }

  /** The hashes of all objects that are there. */
  async objects(signal?: AbortSignal): Promise<Set<string>> {
    const found = new Set<string>();
    for await (const name of this.backend.list(objectPrefix, signal)) found.add(name.slice(name.lastIndexOf("/") + 1));
    return found;
  }

  /** Its id; durable when it resolves. All that it refers to must be. */
  async writeSnapshot(snapshot: Snapshot): Promise<string> {
    const text = Buffer.from(JSON.stringify(snapshot));
    const id = `${snapshot.time.replace(/[-:]/g, "")}-${idHash(text)}`;
    await this.backend.write(snapshotPrefix + id, this.seal.close(id, text));
    await this.backend.sync();
    return id;
  }

  async snapshotIds(): Promise<string[]> {
    return (await Array.fromAsync(this.backend.list(snapshotPrefix)))
      .map((name) => name.slice(snapshotPrefix.length))
      .sort();
  }

  /** @throws Error when it is missing or damaged */
  async snapshot(id: string): Promise<Named> {
    const name = snapshotPrefix + id;
    const stored = await this.backend.read(name);
    if (stored === undefined) throw new DamagedError(name, "is missing");
    const text = opened(this.seal, id, stored, name);
    if (!id.endsWith(`-${idHash(text)}`)) throw new DamagedError(name, "is damaged: its hash is another one");
    const snapshot = readSnapshot(text.toString());
    if (snapshot === undefined) throw new DamagedError(name, "is not what a backup writes");
    if (snapshot.format > FORMAT) throw new Error(`${name} was made by a later version of modhost: update this one`);
    return { ...snapshot, id };
  }

  /** The entries of a snapshot, in the order in which they were backed up. */
  async *entries({ list }: Snapshot, signal?: AbortSignal): AsyncGenerator<Entry> {
    let rest = "";
    for (const piece of list) {
      const lines = (rest + (await this.readPiece(piece, signal)).toString()).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) yield JSON.parse(line) as Entry;
    }
  }
}

/** An object of the repository is not there as it was written. */
export class DamagedError extends Error {
  /** Its name in the backend. */
  readonly object: string;

  constructor(object: string, what: string) {
    super(`${object} ${what}`);
    this.object = object;
  }
}

const idHash = (text: Buffer): string => createHash("sha256").update(text).digest("hex").slice(0, ID_HASH);

function opened(seal: Seal, name: string, stored: Buffer, where: string): Buffer {
  try {
    return seal.open(name, stored);
  } catch (error) {
    throw new DamagedError(where, `is damaged: ${(error as Error).message}`);
  }
}
