/**
 * The file format of a copy of the metadata: one line for each entry, and a last line with the
 * number of entries and a checksum.
 */
import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { failure } from "../../util/errors.ts";
import { syncFolder } from "../repo/atomic_file.ts";

export type Entry = readonly [key: string, value: Uint8Array];

export interface CopyHeader {
  /** Different for each copy. */
  readonly id: string;
  /** Time of the copy in ISO 8601. */
  readonly made: string;
}

const kind = "modhost metadata copy 1";
/** Number of characters that are written together. */
const MAX_CHUNK = 65_536;

/**
 * Writes a copy, reads it back, and only then replaces the previous copy, so that a whole copy
 * exists at any time. Durable when the promise resolves.
 */
export async function writeCopy(path: string, header: CopyHeader, entries: AsyncIterable<Entry>): Promise<void> {
  const draft = `${path}.draft`;
  try {
    await rm(draft, { force: true });
    const file = await open(draft, "wx", 0o600);
    try {
      await writeLines(file, header, entries);
      await file.sync();
    } finally {
      await file.close();
    }
    for await (const _ of readCopy(draft));
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  await syncFolder(dirname(path));
}

async function writeLines(file: FileHandle, header: CopyHeader, entries: AsyncIterable<Entry>): Promise<void> {
  const hash = createHash("sha256");
  let waiting = line(hash, { kind, ...header });
  let count = 0;
  for await (const [key, value] of entries) {
    waiting += line(hash, [key, Buffer.from(value.buffer, value.byteOffset, value.length).toString("base64")]);
    count += 1;
    if (waiting.length < MAX_CHUNK) continue;
    await file.write(waiting);
    waiting = "";
  }
  await file.write(`${waiting}${JSON.stringify({ entries: count, sha256: hash.digest("hex") })}\n`);
}

function line(hash: Hash, value: unknown): string {
  const text = `${JSON.stringify(value)}\n`;
  hash.update(text);
  return text;
}

/** Reads the header of a copy; undefined when the file is missing or is not a copy. */
export async function copyHeader(path: string): Promise<CopyHeader | undefined> {
  try {
    for await (const text of linesOf(path)) return headerOf(text);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  return undefined;
}

function headerOf(text: string): CopyHeader | undefined {
  try {
    const { kind: found, id, made } = JSON.parse(text) as Record<string, unknown>;
    return found === kind && typeof id === "string" && typeof made === "string" ? { id, made } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Yields the entries of a copy. The entries are valid only if the iteration ends without an error.
 *
 * @throws NodeError when the copy is damaged or incomplete
 */
export async function* readCopy(path: string): AsyncGenerator<Entry, void, undefined> {
  const hash = createHash("sha256");
  const damaged = (reason: string) => failure("METADATA_COPY_DAMAGED", { path, reason });
  let count = -1;
  let last: string | undefined;
  for await (const text of linesOf(path)) {
    if (last !== undefined) {
      if (count < 0 && headerOf(last) === undefined) throw damaged("its header is missing");
      if (count >= 0) yield entryOf(last) ?? fail(damaged(`line ${count + 2} is not an entry`));
      hash.update(`${last}\n`);
      count += 1;
    }
    last = text;
  }
  const { entries, sha256 } = endOf(last) ?? fail(damaged("its end is missing"));
  if (entries !== count || sha256 !== hash.digest("hex")) throw damaged("its checksum does not fit");
}

async function* linesOf(path: string): AsyncGenerator<string, void, undefined> {
  let rest = "";
  for await (const piece of createReadStream(path, { encoding: "utf8" })) {
    const parts = (rest + String(piece)).split("\n");
    rest = parts.pop() ?? "";
    yield* parts;
  }
  if (rest !== "") yield rest;
}

function fail(error: Error): never {
  throw error;
}

function entryOf(text: string): Entry | undefined {
  try {
    const [key, value] = JSON.parse(text) as [unknown, unknown];
    return typeof key === "string" && typeof value === "string" ? [key, Buffer.from(value, "base64")] : undefined;
  } catch {
    return undefined;
  }
}

function endOf(text: string | undefined): { entries: number; sha256: string } | undefined {
  try {
    const { entries, sha256 } = JSON.parse(text ?? "") as Record<string, unknown>;
    return typeof entries === "number" && typeof sha256 === "string" ? { entries, sha256 } : undefined;
  } catch {
    return undefined;
  }
}
