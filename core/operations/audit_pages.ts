/** Reads the current and the previous audit file backwards. */
import { type FileHandle, open } from "node:fs/promises";
import type { AuditFilter, AuditPage, Change } from "../types.ts";

/** Number of bytes that are read at a time. */
const PIECE = 64 * 1024;
const MAX_LIMIT = 500;
const NEWLINE = 0x0a;

/**
 * Returns a page of records, the newest first. A missing file has none; a line that is not a record
 * is skipped.
 */
export async function auditPage(path: string, filter: AuditFilter = {}): Promise<AuditPage> {
  const { before, limit = 50 } = filter;
  const wanted = Math.max(1, Math.min(MAX_LIMIT, Math.floor(limit)));
  const changes: Change[] = [];
  let isReached = before === undefined;
  for await (const line of linesOfBoth(path)) {
    const change = recordOf(line);
    if (!isReached) isReached = change?.id === before;
    else if (change !== undefined && fits(change, filter)) {
      if (changes.length === wanted) return { changes, next: changes.at(-1)?.id };
      changes.push(change);
    }
  }
  return { changes };
}

async function* linesOfBoth(path: string): AsyncGenerator<string> {
  let first: number | undefined;
  for (const each of [path, `${path}.1`]) {
    const file = await open(each, "r").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return undefined;
      throw error;
    });
    if (file === undefined) continue;
    try {
      const { ino } = await file.stat();
      // The file that was read already has just been renamed.
      if (ino === first) continue;
      first = ino;
      yield* linesBackwards(file);
    } finally {
      await file.close();
    }
  }
}

/** Yields the lines, the last one first. */
async function* linesBackwards(file: FileHandle): AsyncGenerator<string> {
  let { size: end } = await file.stat();
  /** The end of a line whose beginning is not read yet. */
  let rest: Buffer[] = [];
  while (end > 0) {
    const from = Math.max(0, end - PIECE);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(end - from), 0, end - from, from);
    // The file was replaced by a shorter one meanwhile.
    if (bytesRead === 0) return;
    let last = bytesRead;
    for (
      let at = buffer.lastIndexOf(NEWLINE, last - 1);
      at >= 0;
      at = at === 0 ? -1 : buffer.lastIndexOf(NEWLINE, at - 1)
    ) {
      yield Buffer.concat([buffer.subarray(at + 1, last), ...rest]).toString();
      rest = [];
      last = at;
    }
    rest.unshift(buffer.subarray(0, last));
    end = from;
  }
  yield Buffer.concat(rest).toString();
}

/** Returns undefined for a line that a crash has left incomplete. */
function recordOf(line: string): Change | undefined {
  if (line === "") return undefined;
  try {
    const value = JSON.parse(line) as Change;
    return typeof value?.id === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}

function fits(change: Change, { by, what, result }: AuditFilter): boolean {
  if (by !== undefined && !change.by.includes(by)) return false;
  if (what !== undefined && !change.what.includes(what)) return false;
  return result === undefined || change.result === result;
}
