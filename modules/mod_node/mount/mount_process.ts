/** The process that holds the mounts, as the node sees it. */
import { type ChildProcess, spawn } from "node:child_process";
import type { Duplex } from "node:stream";
import { fileURLToPath } from "node:url";
import { failure } from "../util/errors.ts";
import { FuseDevice } from "./fuse/fuse_device.ts";
import { type Command, descriptorsOf, type MountSpec, type Reply, unmount } from "./mount_ops.ts";
import { mounted, mountType } from "./mount_table.ts";

const extension = new URL(import.meta.url).pathname.endsWith(".ts") ? "ts" : "js";
const program = fileURLToPath(new URL(`./mount_child.${extension}`, import.meta.url));
/** Milliseconds for an ordinary unmount. */
const MAX_UNMOUNT_MS = 15_000;

export class MountProcess {
  readonly #specs: readonly MountSpec[];
  readonly #child: ChildProcess;
  /** The devices for replies, in order of the mounts. */
  readonly devices: readonly FuseDevice[];
  /** Resolves when the process has ended for whatever reason; nothing of it is mounted then. */
  readonly ended: Promise<void>;

  /** @throws NodeError where the system does not allow it */
  constructor(places: readonly MountSpec[]) {
    this.#specs = places;
    this.devices = FuseDevice.open(places.length);
    const { NODE_OPTIONS: _, ...env } = process.env;
    this.#child = spawn(process.execPath, ["--disable-sigusr1", program], {
      stdio: ["ignore", "ignore", "ignore", "ipc", ...this.devices.flatMap(({ fd }) => [fd, "pipe" as const])],
      // Each mount occupies a thread.
      env: { ...env, UV_THREADPOOL_SIZE: String(places.length + 2) },
      // It outlives the node, in order to unmount.
      detached: true,
    });
    this.ended = new Promise((resolve) => {
      const over = () => resolve(this.#cleanUp());
      this.#child.once("exit", over);
      this.#child.once("error", over);
    });
  }

  /** Of the process. */
  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** The kernel's requests of one mount. */
  requests(place: number): Duplex {
    return this.#child.stdio[descriptorsOf(place).channel] as Duplex;
  }

  /** Mounts all folders or none. @throws NodeError with the reason */
  async mount(): Promise<void> {
    const answer = await new Promise<Reply>((resolve) => {
      this.#child.once("message", (message) => resolve(message as Reply));
      const over = () => resolve({ failed: "fuse: the process that mounts has ended" });
      this.ended.then(over, over);
      this.#tell({ mount: this.#specs });
    });
    if ("mounted" in answer) return;
    await this.close();
    throw failure("MOUNT_FAILED", { reason: answer.failed });
  }

  /** Unmounts all folders, even if they are in use. */
  async close(): Promise<void> {
    this.#tell({ unmount: true });
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), MAX_UNMOUNT_MS);
    await this.ended;
    clearTimeout(timer);
  }

  #tell(order: Command): void {
    if (this.#child.connected) this.#child.send(order, () => undefined);
  }

  async #cleanUp(): Promise<void> {
    for (const at of this.#specs.keys()) this.requests(at).destroy();
    const ours = new Set(this.#specs.map(({ folder, source }) => `${source}\0${folder}`));
    for (const { folder, source } of await mounted(mountType)) {
      if (ours.has(`${source}\0${folder}`)) await unmount(folder, { force: true });
    }
    for (const device of this.devices) device.close();
  }
}
