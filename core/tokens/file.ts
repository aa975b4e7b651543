/** The token file: digests and properties, but no secrets. */
import { randomUUID } from "node:crypto";
import { closeSync, linkSync, openSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { NewToken } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { makePrivateFolder } from "../util/private_folder.ts";
import { withoutSecrets } from "../util/secret_text.ts";
import { writeFileAtomic } from "../util/write_file_atomic.ts";
import type { ScopeKinds } from "./scopes.ts";
import { digestOf, idOf, makeSecret } from "./secret.ts";
import { normalized, type StoredToken } from "./spec.ts";

const MAX_FILE_BYTES = 8 * 1024 * 1024;
/**
 * Age in milliseconds after which a lock counts as abandoned: its owner writes only a small file.
 */
const MAX_LOCK_AGE = 10_000;
const LOCK_RETRY = 20;

/**
 * Returns the entries of the file as written; empty if there is no file.
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
    // The parser's message would quote the file, so it is not used.
  }
  throw new ModhostError("TOKENS_UNREADABLE", { path, reason: 'it is not {"version": 1, "tokens": [...]}' });
}

/**
 * Adds a token to the file; with `kinds`, its scopes must be declared there. @throws {ModhostError}
 * TOKEN_INVALID, TOKEN_EXISTS, TOKENS_UNREADABLE, TOKENS_UNWRITABLE
 */
export async function addToken(
  path: string,
  wanted: NewToken,
  by: string,
  kinds?: ScopeKinds,
): Promise<{ readonly token: StoredToken; readonly secret: string }> {
  const now = Date.now();
  const terms = normalized(wanted, now);
  kinds?.assertDeclared(terms.scopes);
  const { id, secret } = makeSecret();
  const sha256 = digestOf(secret).toString("hex");
  const token: StoredToken = { id, ...terms, sha256, created: new Date(now).toISOString(), by };
  await edit(path, (tokens) => {
    if (tokens.some(({ name }) => name === token.name)) throw new ModhostError("TOKEN_EXISTS", { name: token.name });
    return [...tokens, token];
  });
  return { token, secret };
}

/**
 * Removes a token from the file, by name, id or secret. @throws {ModhostError} TOKEN_UNKNOWN,
 * TOKENS_UNREADABLE
 */
export async function removeToken(path: string, nameOrId: string): Promise<StoredToken> {
  const idOrName = idOf(nameOrId) ?? nameOrId;
  let removed: StoredToken | undefined;
  await edit(path, (tokens) => {
    // A name may equal another token's id, so names take precedence.
    removed = tokens.find(({ name }) => name === idOrName) ?? tokens.find(({ id }) => id === idOrName);
    if (removed === undefined) throw new ModhostError("TOKEN_UNKNOWN", { name: withoutSecrets(nameOrId) });
    return tokens.filter((token) => token !== removed);
  });
  return removed as unknown as StoredToken;
}

function edit(path: string, change: (tokens: readonly StoredToken[]) => readonly StoredToken[]): Promise<void> {
  return underLock(path, () => {
    const tokens = change(readTokenFile(path));
    return writeFileAtomic(path, `${JSON.stringify({ version: 1, tokens }, undefined, 2)}\n`, 0o600);
  }).catch((error: unknown) => {
    if (ModhostError.is(error)) throw error;
    // The disk is full, or the folder is not writable.
    throw new ModhostError("TOKENS_UNWRITABLE", { path, reason: reasonOf(error) }, { cause: error });
  });
}

/**
 * Calls `run`, which reads and writes the file, under a lock, because other processes may edit the
 * file, too.
 */
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

/**
 * Removes an abandoned lock. Several processes may try, but only one succeeds in renaming it. The
 * lock may be a newer one by then; in that case it is put back.
 */
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
