/** Starts and controls the mount process of a node. */
import { type ChildProcess, spawn } from "node:child_process";
import type { Duplex } from "node:stream";
import { fileURLToPath } from "node:url";
import { failure } from "../util/errors.ts";
import { FuseDevice } from "./fuse/fuse_device.ts";
import { descriptorsOf, type MountCommand, type MountReply, type MountSpec, unmount } from "./mount_ops.ts";
import { mounted, mountType } from "./mount_table.ts";

const extension = new URL(import.meta.url).pathname.endsWith(".ts") ? "ts" : "js";
const program = fileURLToPath(new URL(`./mount_child.${extension}`, import.meta.url));
/** Milliseconds that an ordinary unmount may take. */
const MAX_UNMOUNT_MS = 15_000;

export class MountProcess {
  readonly #specs: readonly MountSpec[];
  readonly #child: ChildProcess;
  /** The devices for replies, in order of the mounts. */
  readonly devices: readonly FuseDevice[];
  /** Resolves when the process has ended for any reason, and its folders are unmounted. */
  readonly ended: Promise<void>;

  /** @throws NodeError if the system does not allow mounts */
  constructor(specs: readonly MountSpec[]) {
    this.#specs = specs;
    this.devices = FuseDevice.open(specs.length);
    const { NODE_OPTIONS: _, ...env } = process.env;
    this.#child = spawn(process.execPath, ["--disable-sigusr1", program], {
      stdio: ["ignore", "ignore", "ignore", "ipc", ...this.devices.flatMap(({ fd }) => [fd, "pipe" as const])],
      // Each mount occupies a thread.
      env: { ...env, UV_THREADPOOL_SIZE: String(specs.length + 2) },
      // The process outlives the node, so that it can unmount.
      detached: true,
    });
    this.ended = new Promise((resolve) => {
      const over = () => resolve(this.#cleanUp());
      this.#child.once("exit", over);
      this.#child.once("error", over);
    });
  }

  /** Process id. */
  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Returns the kernel's requests to one mount. */
  requests(index: number): Duplex {
    return this.#child.stdio[descriptorsOf(index).channel] as Duplex;
  }

  /** Mounts all folders or none. @throws NodeError with the reason */
  async mount(): Promise<void> {
    const result = await new Promise<MountReply>((resolve) => {
      this.#child.once("message", (message) => resolve(message as MountReply));
      const over = () => resolve({ failed: "fuse: the process that mounts has ended" });
      this.ended.then(over, over);
      this.#send({ mount: this.#specs });
    });
    if ("mounted" in result) return;
    await this.close();
    throw failure("MOUNT_FAILED", { reason: result.failed });
  }

  /** Unmounts all folders, even if they are in use. */
  async close(): Promise<void> {
    this.#send({ unmount: true });
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), MAX_UNMOUNT_MS);
    await this.ended;
    clearTimeout(timer);
  }

  #send(order: MountCommand): void {
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
