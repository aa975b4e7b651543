/** Helpers that open nodes on repos of go-ipfs and inspect them. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text as textOf } from "node:stream/consumers";
import type { TestContext } from "node:test";
import { openFile, readFile } from "modhost/node";
import type { LowLevelNode, NodeOptions } from "#node/node/low_level_node.ts";
import { openNode } from "#node/node/open.ts";

export async function opened<T>(
  options: NodeOptions | string,
  use: (node: LowLevelNode, notices: string[]) => Promise<T>,
): Promise<T> {
  const notices: string[] = [];
  const onNotice = (sentence: string) => void notices.push(sentence);
  const own = typeof options === "string" ? { repo: options } : options;
  const node = await openNode({ ...own, offline: true, onNotice });
  try {
    return await use(node, notices);
  } finally {
    await node.close();
  }
}

export const pinsOf = async (node: LowLevelNode) => ({
  recursive: (await Array.fromAsync(node.pins.list("recursive"))).map(String).sort(),
  direct: (await Array.fromAsync(node.pins.list("direct"))).map(String).sort(),
});

/** Returns the CIDs that garbage collection removes; asserts that it reports no error. */
export async function collected(node: LowLevelNode): Promise<string[]> {
  const gone: string[] = [];
  for await (const result of node.collect()) {
    assert.ok("removed" in result, JSON.stringify(result));
    gone.push(result.removed.toString());
  }
  return gone.sort();
}

/** Returns the text of a file. */
export async function fileAt(node: LowLevelNode, path: string): Promise<string> {
  const { cid } = await node.resolve(path);
  const pieces = await Array.fromAsync(readFile(await openFile(cid, node.reader()), node.reader()));
  return Buffer.concat(pieces).toString();
}

export const rootOf = async (node: LowLevelNode) => String((await node.files.roots())[0]);

export const { GO_IPFS: goIpfs } = process.env;
export const withoutGoIpfs = goIpfs === undefined && "GO_IPFS does not name the program of go-ipfs";

export interface Said {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number;
}

/** Runs the go-ipfs program and returns its output. */
export async function runGoIpfs(repo: string, args: readonly string[], input = ""): Promise<Said> {
  const child = spawn(goIpfs as string, args, { env: { ...process.env, IPFS_PATH: repo } });
  child.stdin.end(input);
  const [stdout, stderr, [code]] = await Promise.all([
    textOf(child.stdout),
    textOf(child.stderr),
    once(child, "close"),
  ]);
  return { stdout, stderr, code };
}

/**
 * Runs the go-ipfs program, which must not fail, and returns its output without the newline at the
 * end.
 */
export async function go(repo: string, args: readonly string[], input = ""): Promise<string> {
  const { stdout, stderr, code } = await runGoIpfs(repo, args, input);
  assert.equal(code, 0, `${args.join(" ")}: ${stderr}`);
  return stdout.trimEnd();
}

/** Starts the go-ipfs daemon. Resolves with a function that ends it when it is ready. */
export async function goDaemon(t: TestContext, repo: string): Promise<() => Promise<void>> {
  const env = { ...process.env, IPFS_PATH: repo };
  const child = spawn(goIpfs as string, ["daemon", "--offline"], { env, stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  t.after(() => child.kill("SIGKILL"));
  let said = "";
  for await (const piece of child.stdout) {
    said += piece;
    if (said.includes("Daemon is ready")) break;
  }
  assert.match(said, /Daemon is ready/);
  return async () => {
    child.kill("SIGTERM");
    await ended;
  };
}
