/** Reads the bytes that references point to. Errors for missing bytes have the texts of go-ipfs. */
import type { FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { getSystemErrorMessage } from "node:util";
import { textBytes } from "../../util/byte_text.ts";
import type { NodeError } from "../../util/errors.ts";
import { openPlainFile } from "../plain_file.ts";
import { discard, type HttpContent, requestUrl } from "./http_content.ts";
import { CorruptReference, isUrl, type Reference, type Status, statuses } from "./reference.ts";

/** Milliseconds for reading a whole range. Nothing else limits how long reading a block takes. */
const MAX_WAIT_MS = 60_000;

/**
 * Reads the bytes of a reference without checking them.
 * @throws CorruptReference
 */
export function readBacking(root: string, reference: Reference): Promise<Uint8Array> {
  return isUrl(reference.path) ? readUrl(reference) : readFileRange(join(root, reference.path), reference);
}

async function readFileRange(path: string, { offset, size }: Reference): Promise<Uint8Array> {
  const file = await openPlainFile(textBytes(path)).catch((error: NodeJS.ErrnoException) => {
    const status = error.code === "ENOENT" ? statuses.fileNotFound : statuses.fileError;
    throw systemFailure(status, `open ${path}`, error);
  });
  try {
    return await fill(file, offset, size);
  } catch (error) {
    if (error instanceof CorruptReference) throw error;
    throw systemFailure(statuses.fileError, `read ${path}`, error as NodeJS.ErrnoException);
  } finally {
    await file.close();
  }
}

async function fill(file: FileHandle, offset: number, size: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(size);
  let filled = 0;
  while (filled < size) {
    const { bytesRead } = await file.read(bytes, filled, size - filled, offset + filled);
    if (bytesRead === 0) throw tooShort(filled);
    filled += bytesRead;
  }
  return bytes;
}

const tooShort = (read: number) => new CorruptReference(statuses.fileChanged, read === 0 ? "EOF" : "unexpected EOF");

function systemFailure(status: Status, what: string, error: NodeJS.ErrnoException): CorruptReference {
  const { code, errno = 0, message } = error;
  const reason = code === "EISDIR" ? "is a directory" : errno === 0 ? message : getSystemErrorMessage(errno);
  return new CorruptReference(status, `${what}: ${reason}`, error);
}

async function readUrl({ path, offset, size }: Reference): Promise<Uint8Array> {
  const range = `bytes=${offset}-${offset + size - 1}`;
  try {
    const content = await requestUrl(path, { range, signal: AbortSignal.timeout(MAX_WAIT_MS) });
    return await part(content, offset, size);
  } catch (error) {
    if (error instanceof CorruptReference) throw error;
    throw new CorruptReference(statuses.fileError, (error as NodeError).message, error);
  }
}

/** Reads a range from a response. A server without support for ranges sends the whole content. */
async function part(content: HttpContent, offset: number, size: number): Promise<Uint8Array> {
  const { status, body } = content;
  if (status !== 200 && status !== 206) {
    await discard(content);
    throw new CorruptReference(statuses.fileError, `expected HTTP 200 or 206 got ${status}`);
  }
  const bytes = new Uint8Array(size);
  let skip = status === 200 ? offset : 0;
  let filled = 0;
  for await (const piece of body) {
    const wanted = piece.subarray(skip, skip + size - filled);
    skip = Math.max(0, skip - piece.length);
    bytes.set(wanted, filled);
    filled += wanted.length;
    if (filled === size) break;
  }
  if (filled < size) throw tooShort(filled);
  return bytes;
}
