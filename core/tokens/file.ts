/** The file of tokens: digests and terms, no secret. */
import { randomUUID } from "node:crypto";
import { closeSync, linkSync, openSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { NewToken } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { makePrivateFolder } from "../util/private_folder.ts";
import { writeFileAtomic } from "../util/write_file_atomic.ts";
import { digestOf, idOf, makeSecret, withoutSecrets } from "./secret.ts";
import { normalized, type StoredToken } from "./spec.ts";

const MAX_FILE_BYTES = 8 * 1024 * 1024;
/** A lock that is older was left by a process that has ended: whoever has it writes a small file. */
const MAX_LOCK_AGE = 10_000;
const LOCK_RETRY = 20;

/**
 * The entries of the file, as they stand there; none where there is no file.
 * @throws {ModhostError} TOKENS_UNREADABLE
 */
export function readTokenFile(path: string): readonly StoredToken[] {
  let text: string;
  try {
    const { size } = statSync(path);
    if (size > MAX_FILE_BYTES) throw new Error(`it has more than ${MAX_FILE_BYTES} bytes`);
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw new ModhostError("TOKENS_UNREADABLE", { path, reason: reasonOf(error) });
  }
  try {
    const { version, tokens } = JSON.parse(text) as { version?: unknown; tokens?: unknown };
    const isTable = Array.isArray(tokens) && tokens.every((token) => typeof token === "object" && token !== null);
    if (version === 1 && isTable) return tokens as StoredToken[];
  } catch {
    // The parser's message would quote the file.
  }
  throw new ModhostError("TOKENS_UNREADABLE", { path, reason: 'it is not {"version": 1, "tokens": [...]}' });
}

/** Adds a token to the file. @throws {ModhostError} TOKEN_INVALID, TOKEN_EXISTS, TOKENS_UNREADABLE */
export async function addToken(
  path: string,
  wanted: NewToken,
  by: string,
): Promise<{ readonly token: StoredToken; readonly secret: string }> {
  const now = Date.now();
  const terms = normalized(wanted, now);
  const { id, secret } = makeSecret();
  const sha256 = digestOf(secret).toString("hex");
  const token: StoredToken = { id, ...terms, sha256, created: new Date(now).toISOString(), by };
  await edit(path, (tokens) => {
    if (tokens.some(({ name }) => name === token.name)) throw new ModhostError("TOKEN_EXISTS", { name: token.name });
    return [...tokens, token];
  });
  return { token, secret };
}

/** Takes a token out of the file, by name, id or secret. @throws {ModhostError} TOKEN_UNKNOWN, TOKENS_UNREADABLE */
export async function removeToken(path: string, nameOrId: string): Promise<StoredToken> {
  const asked = idOf(nameOrId) ?? nameOrId;
  let removed: StoredToken | undefined;
  await edit(path, (tokens) => {
    // A name may be what another token's id is: names go first.
    removed = tokens.find(({ name }) => name === asked) ?? tokens.find(({ id }) => id === asked);
    if (removed === undefined) throw new ModhostError("TOKEN_UNKNOWN", { name: withoutSecrets(nameOrId) });
    return tokens.filter((token) => token !== removed);
  });
  return removed as unknown as StoredToken;
}

function edit(path: string, change: (tokens: readonly StoredToken[]) => readonly StoredToken[]): Promise<void> {
  return underLock(path, () => {
    const tokens = change(readTokenFile(path));
    return writeFileAtomic(path, `${JSON.stringify({ version: 1, tokens }, undefined, 2)}\n`, 0o600);
  });
}

/** Other processes may edit the file, too: `run` reads and writes it under a lock. */
export async function underLock(path: string, run: () => Promise<void>): Promise<void> {
  makePrivateFolder(dirname(path));
  const lock = `${path}.lock`;
  await acquire(lock);
  try {
    await run();
  } finally {
    rmSync(lock, { force: true });
  }
}

async function acquire(lock: string): Promise<void> {
  for (;;) {
    try {
      closeSync(openSync(lock, "wx", 0o600));
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    if (isLeft(lock)) takeAway(lock);
    else await sleep(LOCK_RETRY);
  }
}

function isLeft(lock: string): boolean {
  const { mtimeMs = Date.now() } = statSync(lock, { throwIfNoEntry: false }) ?? {};
  return Date.now() - mtimeMs > MAX_LOCK_AGE;
}

/** Of several processes that find a lock that was left, one gets it under a name of its own; it may be a newer one by then. */
function takeAway(lock: string): void {
  const own = `${lock}.${randomUUID()}`;
  try {
    renameSync(lock, own);
    if (!isLeft(own)) linkSync(own, lock);
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (!["ENOENT", "EEXIST"].includes(code)) throw error;
  } finally {
    rmSync(own, { force: true });
  }
}
