/** Makes a snapshot: writes the missing pieces first, and then the snapshot that refers to them. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { BackupFile, BackupSnapshot } from "../../../core/types.ts";
import { PRIVATE_FILE, PRIVATE_FOLDER } from "../disk.ts";
import { fixedPieces, linePieces, PIECE_BYTES } from "./cut.ts";
import { type Entry, FORMAT, type Named, type Piece, type Snapshot, type SnapshotFacts } from "./format.ts";
import { lock } from "./lock.ts";
import { PieceStore } from "./piece_store.ts";
import { DamagedError, type Repository } from "./repository.ts";

/** The data of one source. */
export interface Part extends Pick<BackupSnapshot, "files"> {
  /** Maps the source's name of a folder to its name in the snapshot. */
  readonly folders: ReadonlyMap<string, string>;
}

export interface WriteProgress {
  readonly files: number;
  /** Total size of the files, including unchanged files that were not read. */
  readonly bytes: number;
  /** Bytes that were written to the repository. */
  readonly added: number;
}

export interface WriteOptions {
  readonly signal: AbortSignal;
  readonly progress: (progress: WriteProgress) => void;
}

/**
 * `facts` is called when all files have been read. @throws Error of the repository or of a source.
 * The next backup reuses what was written until then
 */
export async function writeSnapshot(
  repository: Repository,
  parts: readonly Part[],
  facts: () => SnapshotFacts,
  { signal, progress }: WriteOptions,
): Promise<Named> {
  const writerLock = await lock(repository.backend);
  try {
    const stopped = AbortSignal.any([signal, writerLock.lost]);
    const previous = await previousEntries(repository, stopped);
    const store = await PieceStore.open(repository, previous.values(), stopped);
    try {
      const entries = await writeEntries(parts, previous, store, progress);
      await store.flush();
      const list = await writeList(entries, store);
      await repository.backend.sync();
      await writerLock.check();
      stopped.throwIfAborted();
      const files = entries.filter(({ path }) => !path.endsWith("/")).length;
      const bytes = entries.reduce((sum, { size }) => sum + size, 0);
      const snapshot: Snapshot = { format: FORMAT, ...facts(), files, bytes, added: store.added, list };
      return { ...snapshot, id: await repository.writeSnapshot(snapshot) };
    } finally {
      await store.settled();
    }
  } finally {
    await writerLock.release();
  }
}

async function writeEntries(
  parts: readonly Part[],
  previous: ReadonlyMap<string, Entry>,
  store: PieceStore,
  progress: WriteOptions["progress"],
): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  let files = 0;
  let bytes = 0;
  const report = (more: number) => progress({ files, bytes: bytes + more, added: store.added });
  for (const { files: all, folders } of parts) {
    for await (const file of all) {
      const folder = folders.get(file.folder);
      if (folder === undefined) throw new Error(`${file.path} is in the folder ${file.folder}, which is not named`);
      const entry = await entryOf({ file, folder, before: previous.get(keyOf(folder, file.path)) }, store, report);
      entries.push(entry);
      files += file.path.endsWith("/") ? 0 : 1;
      bytes += entry.size;
      report(0);
    }
  }
  return entries;
}

const keyOf = (folder: string, path: string): string => `${folder}/${path}`;

/**
 * Returns the files of the latest snapshot. If that snapshot is damaged, returns none, so that
 * everything is stored again.
 */
async function previousEntries(repository: Repository, signal: AbortSignal): Promise<Map<string, Entry>> {
  const found = new Map<string, Entry>();
  const latest = (await repository.snapshotIds()).at(-1);
  if (latest === undefined) return found;
  try {
    for await (const entry of repository.entries(await repository.snapshot(latest), signal)) {
      found.set(keyOf(entry.folder, entry.path), entry);
    }
    return found;
  } catch (error) {
    if (!(error instanceof DamagedError)) throw error;
    return new Map();
  }
}

interface Source {
  readonly file: BackupFile;
  /** Name of the folder in the snapshot. */
  readonly folder: string;
  /** The entry of this file in the previous snapshot. */
  readonly before: Entry | undefined;
}

async function entryOf(
  { file, folder, before }: Source,
  store: PieceStore,
  report: (bytes: number) => void,
): Promise<Entry> {
  const { path, state, growing } = file;
  const isFolder = path.endsWith("/");
  const mode = (file.mode ?? (isFolder ? PRIVATE_FOLDER : PRIVATE_FILE)) & 0o777;
  const known = { folder, path, mode, ...(state === undefined ? {} : { state }) };
  const named = growing === undefined ? known : { ...known, growing };
  if (isFolder) return { ...named, size: 0, pieces: [] };
  const isSame = state !== undefined && before?.state === state;
  if (isSame && store.hasAll(before.pieces)) return { ...named, size: before.size, pieces: before.pieces };
  const pieces = growing !== undefined && before?.growing === growing ? await beginning(file, before, store) : [];
  let size = pieces.reduce((sum, [, length]) => sum + length, 0);
  const from = size;
  const cut = file.is_lines === true ? linePieces : fixedPieces;
  const stored: Piece[] = [...pieces];
  for await (const piece of cut(file.read(from))) {
    stored.push(await store.put(piece));
    size += piece.length;
    report(size);
    await nextTurn();
  }
  return { ...named, size, pieces: stored };
}

/** Returns the whole pieces of a file that has grown; none when the last of them has changed. */
async function beginning(file: BackupFile, before: Entry, store: PieceStore): Promise<readonly Piece[]> {
  const whole = before.pieces.filter(([, length]) => length === PIECE_BYTES);
  const last = whole.at(-1);
  if (last === undefined || !store.hasAll(whole)) return [];
  for await (const piece of fixedPieces(file.read((whole.length - 1) * PIECE_BYTES))) {
    return store.isPiece(last, piece) ? whole : [];
  }
  return [];
}

/** Number of entries that are serialized before other work runs. */
const MAX_BATCH = 1000;

/** Writes the list of entries. Their pieces must have final addresses. */
async function writeList(entries: readonly Entry[], store: PieceStore): Promise<readonly Piece[]> {
  async function* content() {
    for (let at = 0; at < entries.length; at += MAX_BATCH) {
      const lines = entries.slice(at, at + MAX_BATCH).map((entry) => `${JSON.stringify(entry)}\n`);
      yield Buffer.from(lines.join(""));
      await nextTurn();
    }
  }
  const list: Piece[] = [];
  for await (const piece of linePieces(content())) list.push(await store.put(piece));
  await store.end();
  return list;
}
