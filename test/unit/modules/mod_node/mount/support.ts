/**
 * A node with its mounts below a temporary folder, and programs of other processes that use them.
 */
import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { addEntries, addSettings } from "modhost/node";
import { mounted, mountType } from "#node/mount/mount_table.ts";
import type { LowLevelNode, NodeOptions } from "#node/node/low_level_node.ts";
import { openNode } from "#node/node/open.ts";

/** Why mounts cannot be tested here; false if they can. */
export const skip = reason();

function reason(): string | false {
  if (process.platform !== "linux") return "mounting needs Linux";
  if (process.getuid?.() !== 0) return "mounting needs root";
  try {
    accessSync("/dev/fuse", constants.R_OK | constants.W_OK);
    return false;
  } catch {
    return "there is no /dev/fuse";
  }
}

/** Seconds after which a hanging program is killed: a mount may be at fault. */
const patience = "120";

export class MountFixture implements AsyncDisposable {
  readonly folder: string;
  #node: LowLevelNode | undefined;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** Creates folders for the mounts. Every path contains a space. */
  static async make(): Promise<MountFixture> {
    const folder = await realpath(await mkdtemp(join(tmpdir(), "modhost mount-")));
    const fixture = new MountFixture(folder);
    await Promise.all([fixture.ipfs, fixture.ipns].map((path) => mkdir(path)));
    return fixture;
  }

  get repo(): string {
    return join(this.folder, "repo");
  }
  get ipfs(): string {
    return join(this.folder, "ipfs");
  }
  get ipns(): string {
    return join(this.folder, "ipns");
  }
  get node(): LowLevelNode {
    if (this.#node === undefined) throw new Error("The node is not open");
    return this.#node;
  }

  /** Opens the node without a network. */
  async open(options: Partial<NodeOptions> = {}): Promise<LowLevelNode> {
    this.#node = await openNode({ repo: this.repo, offline: true, ...options });
    return this.#node;
  }

  /** Opens and mounts. */
  async mount(): Promise<LowLevelNode> {
    const node = await this.open();
    await node.mounts.mount(this);
    return node;
  }

  async close(): Promise<void> {
    await this.#node?.close();
    this.#node = undefined;
  }

  /** Returns the folders below this one that are mounted. */
  async mounted(): Promise<string[]> {
    const all = await mounted(mountType);
    return all.map(({ folder }) => folder).filter((path) => path.startsWith(this.folder));
  }

  /** Runs a script in the folder and returns its output. @throws Error with the error output */
  async shell(script: string): Promise<string> {
    const { stdout } = await promisify(execFile)("timeout", [patience, "bash", "-ec", script], {
      cwd: this.folder,
      maxBuffer: 2 ** 26,
    });
    return stdout;
  }

  /** Adds files by path below a folder, and returns the CID of the folder. */
  async add(files: Iterable<readonly [path: string, content: AsyncIterable<Uint8Array>]>, sharded = false) {
    async function* entries() {
      for (const [path, body] of files) yield { path: `tree/${path}`, kind: "file" as const, body };
    }
    let root = "";
    const settings = { ...addSettings({}), sharded };
    for await (const { name, built } of addEntries(this.node, entries(), settings, { pin: true })) {
      if (name === "tree" && built !== undefined) root = built.cid.toString();
    }
    return root;
  }

  /** Unmounts everything first. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close().catch(() => undefined);
    for (const path of await this.mounted()) await promisify(execFile)("umount", ["-i", "-f", "-l", path]);
    await rm(this.folder, { recursive: true, force: true });
  }
}

export async function* bytes(content: string | Uint8Array): AsyncGenerator<Uint8Array> {
  yield Buffer.from(content);
}
