/** A repository: its snapshots, and its objects, which are checked when they are read. */
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
  /** The secret for encryption. A repository is encrypted from the beginning or never. */
  readonly secret?: Uint8Array | undefined;
  /** Creates the repository if it does not exist. */
  readonly make?: boolean;
}

/**
 * Number of recently read objects that stay in memory. Consecutive pieces often share an object.
 */
const MAX_CACHED = 4;
/** Number of hash characters in the name of a snapshot. */
const ID_HASH = 16;

/**
 * @throws Error when the repository does not exist or has a later format, or when the key is
 * missing, wrong or unexpected
 */
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
      `${backend.name} is not encrypted, and a key was given (backup_key_file): back up to another destination, or without a key`,
    );
  }
  if (secret === undefined)
    throw new Error(
      `${backend.name} is encrypted: name the file of its key by --key-file, or the option backup_key_file`,
    );
  const seal = await sealOf(secret, encryption);
  if (seal === undefined) throw new Error(`${backend.name} is encrypted with a different key`);
  return new Repository(backend, seal);
}

async function makeRepository(backend: Backend, secret: Uint8Array | undefined): Promise<Repository> {
  for await (const found of backend.list(""))
    throw new Error(`${backend.name} is not empty (${found}): a new backup needs an empty destination`);
  const kind = { kind: "modhost backup", format: FORMAT } as const;
  const { seal, encryption } = secret === undefined ? { seal: plainSeal } : await newSeal(secret);
  const head: Head = encryption === undefined ? kind : { ...kind, encryption };
  // Another process may have created the repository meanwhile, with a different salt.
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
  readonly #cache = new Map<string, Buffer>();

  constructor(backend: Backend, seal: Seal) {
    this.backend = backend;
    this.seal = seal;
  }

  /** Stores an object under the hash of its content. */
  async writeObject(hash: string, content: Uint8Array, signal?: AbortSignal): Promise<void> {
    await this.backend.write(objectName(hash), this.seal.close(hash, content), signal);
  }

  /** @throws Error that names the object when it is missing or damaged */
  async readObject(hash: string, signal?: AbortSignal): Promise<Buffer> {
    const name = objectName(hash);
    if (!HASH.test(hash)) throw new DamagedError(name, "is not the name of an object");
    const stored = await this.backend.read(name, signal);
    if (stored === undefined) throw new DamagedError(name, "is missing");
    const content = opened(this.seal, hash, stored, name);
    if (this.seal.hash(content) !== hash) throw new DamagedError(name, "is damaged: its hash is different");
    return content;
  }

  /** @throws the same errors as `readObject` */
  async readPiece([hash, length, object = hash, at = 0]: Piece, signal?: AbortSignal): Promise<Buffer> {
    const content = this.#cache.get(object) ?? (await this.readObject(object, signal));
    this.#cache.delete(object);
    this.#cache.set(object, content);
    const [oldest] = this.#cache.keys();
    if (this.#cache.size > MAX_CACHED && oldest !== undefined) this.#cache.delete(oldest);
    const piece = content.subarray(at, at + length);
    if (piece.length !== length) throw new DamagedError(objectName(object), "is shorter than its snapshot says");
    return piece;
  }

  /** Returns the hashes of all objects in the repository. */
  async objects(signal?: AbortSignal): Promise<Set<string>> {
    const found = new Set<string>();
    for await (const name of this.backend.list(objectPrefix, signal)) found.add(name.slice(name.lastIndexOf("/") + 1));
    return found;
  }

  /**
   * Returns the id of the snapshot. It is durable when the promise resolves; everything that it
   * refers to must already be durable.
   */
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

  /** @throws Error when the snapshot is missing or damaged */
  async snapshot(id: string): Promise<Named> {
    const name = snapshotPrefix + id;
    const stored = await this.backend.read(name);
    if (stored === undefined) throw new DamagedError(name, "is missing");
    const text = opened(this.seal, id, stored, name);
    if (!id.endsWith(`-${idHash(text)}`)) throw new DamagedError(name, "is damaged: its hash is different");
    const snapshot = readSnapshot(text.toString());
    if (snapshot === undefined) throw new DamagedError(name, "is not a valid snapshot");
    if (snapshot.format > FORMAT) throw new Error(`${name} was made by a later version of modhost: update this one`);
    return { ...snapshot, id };
  }

  /** Yields the entries of a snapshot in the order of the backup. */
  async *entries({ list }: Snapshot, signal?: AbortSignal): AsyncGenerator<Entry> {
    let rest = "";
    for (const piece of list) {
      const lines = (rest + (await this.readPiece(piece, signal)).toString()).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) yield JSON.parse(line) as Entry;
    }
  }
}

/** Checked because a manipulated snapshot could name files outside the repository. */
const HASH = /^[0-9a-f]{64}$/;

/** An object of the repository is missing or differs from what was written. */
export class DamagedError extends Error {
  /** Name of the object in the backend. */
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
