/** Makes a snapshot: writes what the repository does not have yet, and at the end what refers to it all. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { BackupFile, HeldData } from "../../../core/types.ts";
import { PRIVATE_FILE, PRIVATE_FOLDER } from "../disk.ts";
import { fixedPieces, linePieces, PIECE_BYTES } from "./cut.ts";
import { type Entry, FORMAT, type Named, type Piece, type Snapshot, type SnapshotFacts } from "./format.ts";
import { lock } from "./lock.ts";
import { PieceStore } from "./piece_store.ts";
import { DamagedError, type Repository } from "./repository.ts";

/** What a backup has of one source. */
export interface Part extends Pick<HeldData, "files"> {
  /** The name of a folder of the snapshot, by that of the source. */
  readonly folders: ReadonlyMap<string, string>;
}

export interface WriteProgress {
  readonly files: number;
  /** Of files, whether they had to be read or not. */
  readonly bytes: number;
  /** That were written to the repository. */
  readonly added: number;
}

export interface WriteOptions {
  readonly signal: AbortSignal;
  readonly progress: (progress: WriteProgress) => void;
}

/**
 * `facts` is called when all files were read.
 *
 * @throws Error of the repository or of a source; what was written by then is used by the next backup
 */
export async function writeSnapshot(
  repository: Repository,
  parts: readonly Part[],
  facts: () => SnapshotFacts,
  { signal, progress }: WriteOptions,
): Promise<Named> {
  const held = await lock(repository.backend);
  try {
    const stopped = AbortSignal.any([signal, held.lost]);
    const former = await formerEntries(repository, stopped);
    const store = await PieceStore.open(repository, former.values(), stopped);
    try {
      const entries = await writeEntries(parts, former, store, progress);
      await store.flush();
      const list = await writeList(entries, store);
      await repository.backend.sync();
      await held.check();
      stopped.throwIfAborted();
      const files = entries.filter(({ path }) => !path.endsWith("/")).length;
      const bytes = entries.reduce((sum, { size }) => sum + size, 0);
      const snapshot: Snapshot = { format: FORMAT, ...facts(), files, bytes, added: store.added, list };
      return { ...snapshot, id: await repository.writeSnapshot(snapshot) };
    } finally {
      await store.settled();
    }
  } finally {
    await held.release();
  }
}

async function writeEntries(
  parts: readonly Part[],
  former: ReadonlyMap<string, Entry>,
  store: PieceStore,
  progress: WriteOptions["progress"],
): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  let [files, bytes] = [0, 0];
  const tell = (more: number) => progress({ files, bytes: bytes + more, added: store.added });
  for (const { files: all, folders } of parts) {
    for await (const file of all) {
      const folder = folders.get(file.folder);
      if (folder === undefined) throw new Error(`${file.path} is in the folder ${file.folder}, which is not named`);
      const entry = await entryOf({ file, folder, before: former.get(keyOf(folder, file.path)) }, store, tell);
      entries.push(entry);
      files += file.path.endsWith("/") ? 0 : 1;
      bytes += entry.size;
      tell(0);
    }
  }
  return entries;
}

const keyOf = (folder: string, path: string): string => `${folder}/${path}`;

/** The files of the latest snapshot; none when it is damaged: then all is stored anew. */
async function formerEntries(repository: Repository, signal: AbortSignal): Promise<Map<string, Entry>> {
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
  /** Of the snapshot. */
  readonly folder: string;
  /** The same file in the snapshot before. */
  readonly before: Entry | undefined;
}

async function entryOf(
  { file, folder, before }: Source,
  store: PieceStore,
  tell: (bytes: number) => void,
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
    tell(size);
    await nextTurn();
  }
  return { ...named, size, pieces: stored };
}

/** The whole pieces of a file that has grown; none when the last of them is another one by now. */
async function beginning(file: BackupFile, before: Entry, store: PieceStore): Promise<readonly Piece[]> {
  const whole = before.pieces.filter(([, length]) => length === PIECE_BYTES);
  const last = whole.at(-1);
  if (last === undefined || !store.hasAll(whole)) return [];
  for await (const piece of fixedPieces(file.read((whole.length - 1) * PIECE_BYTES))) {
    return store.isPiece(last, piece) ? whole : [];
  }
  return [];
}

/** Entries whose lines are made at once. */
const MAX_BATCH = 1000;

/** Writes the list of entries, whose pieces have their places. */
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
