/**
 * Fills a small disk completely, and checks that the node can still be read, restarted and cleaned
 * up.
 */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { open, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { apiOffline, type Query, RpcServer } from "#test/support/rpc_server.ts";

const run = promisify(execFile);

/**
 * Mounts a small file system in a folder. Returns a function that unmounts it, or undefined without
 * permission.
 */
export async function mountSmallDisk(folder: string, megabytes: number): Promise<(() => Promise<void>) | undefined> {
  try {
    await run("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", folder]);
  } catch {
    return undefined;
  }
  return async () => {
    await run("umount", ["-l", folder]);
  };
}

export interface FullDiskOptions {
  /** Folder of the small disk. */
  readonly folder: string;
  /** Whether another program uses the space that the node leaves free. */
  readonly toLastByte: boolean;
  /** The signal that ends the node before it is restarted on the full disk. */
  readonly signal: "SIGKILL" | "SIGTERM";
  readonly report?: ((line: string) => void) | undefined;
}

interface CallResult {
  readonly ok: boolean;
  readonly body: Buffer;
}

async function ask(server: RpcServer, command: string, query: Query = {}, data?: Uint8Array): Promise<CallResult> {
  const response = await server.call(command, query, data && { data });
  const body = Buffer.from(await response.arrayBuffer());
  const trailer = response.headers.get("x-stream-error");
  const failed = /"(?:Error|PinErrorMsg)":"[^"]/.test(body.toString("latin1").slice(-2000));
  return { ok: response.ok && trailer === null && !failed, body };
}

/** Resolves to what is wrong; empty if nothing is. */
export async function fullDisk({ folder, toLastByte, signal, report }: FullDiskOptions): Promise<string[]> {
  const wrong: string[] = [];
  const must = async (server: RpcServer, when: string, command: string, query: Query = {}) => {
    const { ok, body } = await ask(server, command, query);
    if (!ok) wrong.push(`${when}: ${command} ${JSON.stringify(query)} responded with ${body.toString().slice(-300)}`);
    return body;
  };
  let server = await RpcServer.start({ folder, env: apiOffline });
  try {
    const stored = await fill(server);
    report?.(`full after ${stored.cids.length} files`);
    if (toLastByte) await takeRest(folder);
    const readAll = async (when: string) => {
      for (const path of ["/", "/kept", "/loose"]) await must(server, when, "files/stat", { arg: path });
      const listed = await must(server, when, "files/ls", { arg: "/kept", long: "true" });
      if (!listed.includes("renamed")) wrong.push(`${when}: files/ls lacks a file: ${listed}`);
      const file = await must(server, when, "files/read", { arg: "/kept/renamed" });
      if (!file.equals(stored.file)) wrong.push(`${when}: files/read gives ${file.length} other bytes`);
      for (const [at, cid] of stored.cids.entries()) {
        const content = await must(server, when, "cat", { arg: cid });
        if (!content.equals(stored.contents[at] as Buffer))
          wrong.push(`${when}: cat gives ${content.length} other bytes`);
      }
      await must(server, when, "pin/ls", { type: "recursive" });
    };
    await readAll("on the full disk");
    await server.kill(signal);
    server = await RpcServer.start({ folder, env: apiOffline });
    // Changes that were not flushed may be lost.
    await must(server, "after the restart", "files/mkdir", { arg: "/loose", parents: "true", flush: "false" });
    await readAll("after the restart");
    const [first, ...others] = stored.cids;
    const free = await freeBytes(folder);
    for (const cid of others) await must(server, "cleaning up", "pin/rm", { arg: cid });
    await must(server, "cleaning up", "files/rm", { arg: "/kept/big", recursive: "true", force: "true" });
    await must(server, "cleaning up", "repo/gc");
    const freed = (await freeBytes(folder)) - free;
    report?.(`${freed} bytes were freed`);
    if (freed < others.length * 400_000) wrong.push(`a collection freed ${freed} bytes`);
    const { ok, body } = await ask(server, "add", {}, randomBytes(100_000));
    if (!ok) wrong.push(`adding after the collection: ${body}`);
    const left = await must(server, "after the collection", "cat", { arg: first as string });
    if (!left.equals(stored.contents[0] as Buffer)) wrong.push("a pinned file is missing after the collection");
    const verified = (await must(server, "after the collection", "repo/verify")).toString();
    if (!verified.includes("verify complete")) wrong.push(verified.slice(-300));
    return wrong;
  } finally {
    await server.stop();
    await rm(join(folder, "taken"), { force: true });
  }
}

/**
 * Adds files, some of them to MFS, until the disk is full. The last changes of MFS are not flushed.
 */
async function fill(server: RpcServer) {
  const file = randomBytes(2000);
  const cids: string[] = [];
  const contents: Buffer[] = [];
  await ask(server, "files/mkdir", { arg: "/kept" });
  await ask(server, "files/write", { arg: "/kept/file", create: "true" }, file);
  await ask(server, "files/write", { arg: "/kept/big", create: "true" }, randomBytes(600_000));
  for (;;) {
    const content = randomBytes(700_000);
    const { ok, body } = await ask(server, "add", { quieter: "true" }, content);
    if (!ok) break;
    cids.push((JSON.parse(body.toString()) as { readonly Hash: string }).Hash);
    contents.push(content);
  }
  await server.call("files/mv", [
    ["arg", "/kept/file"],
    ["arg", "/kept/renamed"],
  ]);
  await ask(server, "files/cp", [
    ["arg", "/kept"],
    ["arg", "/loose"],
    ["flush", "false"],
  ]);
  return { file, cids, contents };
}

/** Fills the free space with another program's file. */
async function takeRest(folder: string): Promise<void> {
  const taken = await open(join(folder, "taken"), "a");
  try {
    for (let size = 1024 * 1024; size >= 512; ) {
      try {
        await taken.write(randomBytes(size));
      } catch {
        size /= 2;
      }
    }
  } finally {
    await taken.close();
  }
}

async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}
