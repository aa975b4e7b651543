/** An upload: the file is added whole, and then linked into the mutable namespace in one step. */
import type { NodeModule, parseCid } from "modhost/node";
import { HttpError } from "../../core/index.ts";
import { isFailure } from "./failures.ts";
import type { Uploaded } from "./types.ts";

export interface UploadAsked {
  /** Of the file. */
  readonly path: string;
  readonly body: AsyncIterable<Uint8Array>;
  readonly isReplacing: boolean;
  readonly cidVersion: number | undefined;
  readonly signal: AbortSignal;
}

/**
 * What was cut leaves nothing at the path; blocks that came go with the next collection of garbage.
 *
 * @throws NodeError, SESSION_LOST among them, {HttpError} 400, 409
 */
export async function upload(
  node: NodeModule,
  { path, body, isReplacing, cidVersion, signal }: UploadAsked,
): Promise<Uploaded> {
  // Before anything is read: what cannot be stored need not be sent.
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
  // A collection of garbage in between must not take what is not linked yet.
  const unguard = pins.guard(() => roots.values());
  try {
    for await (const { built } of node.addTree(entries(), { pin: false, cidVersion, signal })) {
      if (built !== undefined) roots.set(path, built.cid);
    }
    const cid = roots.get(path);
    if (cid === undefined) throw new HttpError(400, "There was no body");
    // Who has left does not expect it to be there.
    signal.throwIfAborted();
    await node.files.cp(`/ipfs/${cid}`, path, { parents: true, force: isReplacing, voids });
    return { path, cid: cid.toString(), size };
  } finally {
    unguard();
  }
}

/** @throws {HttpError} 400 for what is no path of the mutable namespace, 409 for one where something is */
export async function assertFree(node: NodeModule, path: string, isReplacing: boolean): Promise<void> {
  const file = filesPath(path);
  if (file === "/") throw new HttpError(400, "The path of a file does not end with a slash");
  const there = await node.files.stat(file).catch((error: unknown) => {
    if (isFailure(error, "FILE_NOT_FOUND")) return undefined;
    throw error;
  });
  if (there === undefined) return;
  if (there.type === "directory") throw new HttpError(409, `${file} is a directory`);
  if (!isReplacing) throw new HttpError(409, `There is a file ${file}: replace it, or take another name`);
}

/** @throws {HttpError} 400 for what is no path of the mutable namespace */
export function filesPath(path: string): string {
  if (!path.startsWith("/")) throw new HttpError(400, "A path of the mutable namespace begins with a slash");
  if (/^\/ip[fn]s(?:\/|$)/.test(path))
    throw new HttpError(400, `${path} is content that nobody can change: copy it first`);
  if (path !== "/" && path.endsWith("/")) throw new HttpError(400, "The path does not end with a slash");
  if (path.split("/").some((part) => part === "." || part === ".."))
    throw new HttpError(400, "The path has no . and no ..");
  return path;
}
