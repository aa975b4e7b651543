/** Uploads a file: adds it completely, and then links it into the mutable namespace in one step. */
import type { NodeModule, parseCid } from "modhost/node";
import { HttpError } from "../../core/index.ts";
import { isFailure } from "./failures.ts";
import type { Uploaded } from "./types.ts";

export interface UploadRequest {
  /** Target path of the file. */
  readonly path: string;
  readonly body: AsyncIterable<Uint8Array>;
  readonly isReplacing: boolean;
  readonly cidVersion: number | undefined;
  readonly signal: AbortSignal;
}

/**
 * Uploads a file. An interrupted upload leaves nothing at the path; the next garbage collection
 * removes its blocks. @throws NodeError including SESSION_LOST, {HttpError} 400, 409
 */
export async function upload(
  node: NodeModule,
  { path, body, isReplacing, cidVersion, signal }: UploadRequest,
): Promise<Uploaded> {
  // Checked before the body is read, so that the client does not send a body that cannot be stored.
  await assertFree(node, path, isReplacing);
  let size = 0;
  async function* counted(): AsyncGenerator<Uint8Array> {
    for await (const piece of body) {
      size += piece.length;
      yield piece;
    }
  }
  async function* entries() {
    yield { path: "", kind: "file" as const, body: counted() };
  }
  const { pins, lock } = node.lowLevel;
  const { voids } = lock;
  const roots = new Map<string, ReturnType<typeof parseCid>>();
  // Protects the new blocks from garbage collection until they are linked.
  const unguard = pins.guard(() => roots.values());
  try {
    for await (const { built } of node.addTree(entries(), { pin: false, cidVersion, signal })) {
      if (built !== undefined) roots.set(path, built.cid);
    }
    const cid = roots.get(path);
    if (cid === undefined) throw new HttpError(400, "The request has no body");
    // A client that has disconnected does not expect the file to exist.
    signal.throwIfAborted();
    await node.files.cp(`/ipfs/${cid}`, path, { parents: true, force: isReplacing, voids });
    return { path, cid: cid.toString(), size };
  } finally {
    unguard();
  }
}

/** @throws {HttpError} 400 for a path outside the mutable namespace, 409 for a path that exists */
export async function assertFree(node: NodeModule, path: string, isReplacing: boolean): Promise<void> {
  const file = filesPath(path);
  if (file === "/") throw new HttpError(400, "The path of a file must not end with a slash");
  const there = await node.files.stat(file).catch((error: unknown) => {
    if (isFailure(error, "FILE_NOT_FOUND")) return undefined;
    throw error;
  });
  if (there === undefined) return;
  if (there.type === "directory") throw new HttpError(409, `${file} is a directory`);
  if (!isReplacing) throw new HttpError(409, `The file ${file} already exists: replace it, or choose another name`);
}

/** @throws {HttpError} 400 for a path outside the mutable namespace */
export function filesPath(path: string): string {
  if (!path.startsWith("/")) throw new HttpError(400, "A path of the mutable namespace must begin with a slash");
  if (/^\/ip[fn]s(?:\/|$)/.test(path)) throw new HttpError(400, `${path} cannot be changed: copy it first`);
  if (path !== "/" && path.endsWith("/")) throw new HttpError(400, "The path must not end with a slash");
  if (path.split("/").some((part) => part === "." || part === ".."))
    throw new HttpError(400, "The path must not contain . or ..");
  return path;
}
