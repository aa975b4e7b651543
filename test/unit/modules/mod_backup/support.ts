/** Backends and files for tests of backups. */

import type { BackupFile } from "#core/types.ts";
import type { Backend } from "#modules/mod_backup/backends/backend.ts";
import { hashOf } from "#modules/mod_backup/backends/signature.ts";
import type { SnapshotFacts } from "#modules/mod_backup/repository/format.ts";
import type { Repository } from "#modules/mod_backup/repository/repository.ts";
import { writeSnapshot } from "#modules/mod_backup/repository/write.ts";

/** A backend in memory, which records what was written and can be damaged. */
export class MemoryBackend implements Backend {
  readonly name = "memory";
  readonly objects = new Map<string, Buffer>();
  /** Names in the order in which they were written. */
  written: string[] = [];
  /** Called before each write. */
  before: (name: string) => void | Promise<void> = () => {};

  async read(name: string) {
    return this.objects.get(name);
  }

  async write(name: string, bytes: Uint8Array) {
    await this.before(name);
    this.written.push(name);
    this.objects.set(name, Buffer.from(bytes));
  }

  async create(name: string, bytes: Uint8Array) {
    if (this.objects.has(name)) return false;
    this.objects.set(name, Buffer.from(bytes));
    return true;
  }

  async sync() {}
  async tidy() {}

  async remove(name: string) {
    this.objects.delete(name);
  }

  async *list(prefix: string) {
    for (const name of [...this.objects.keys()]) if (name.startsWith(prefix)) yield name;
  }

  /** Returns the names of objects. */
  names(): string[] {
    return [...this.objects.keys()].filter((name) => name.startsWith("objects/"));
  }
}

/** Returns bytes without repetitions, the same for the same seed. */
export function noise(length: number, seed = 1): Buffer {
  const bytes = Buffer.alloc(length);
  let state = seed;
  for (let at = 0; at < length; at += 4) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes.writeUInt32LE((state ^ (state >>> 15)) >>> 0, Math.min(at, Math.max(0, length - 4)));
  }
  return bytes;
}

/** Returns a file of the folder `data`; `reads` counts the bytes that were read from it. */
export function fileOf(path: string, content: Buffer, more: Partial<BackupFile> = {}) {
  const file = {
    folder: "data",
    path,
    ...more,
    reads: 0,
    async *read(from: number) {
      for (let at = from; at < content.length; at += 100_000) {
        const piece = content.subarray(at, at + 100_000);
        file.reads += piece.length;
        yield piece;
      }
    },
  };
  return file;
}

export const facts = (): SnapshotFacts => ({
  time: new Date().toISOString(),
  version: "1.0.0",
  machine: "test",
  folders: [{ name: "data", was: "/data", to: "data" }],
  notes: [],
});

export function snapshotOf(
  repository: Repository,
  files: readonly BackupFile[],
  signal = new AbortController().signal,
) {
  const parts = [{ files, folders: new Map([["data", "data"]]) }];
  return writeSnapshot(repository, parts, facts, { signal, progress: () => {} });
}

/** Returns the content of each file of a snapshot, as its hash. */
export async function contentsOf(repository: Repository, id: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for await (const { path, pieces } of repository.entries(await repository.snapshot(id))) {
    const parts: Buffer[] = [];
    for (const piece of pieces) parts.push(await repository.readPiece(piece));
    found[path] = hashOf(Buffer.concat(parts));
  }
  return found;
}
