/** Mounts, unmounts, and reads the kernel's requests. Used by the mount process. */
import { execFile, spawn } from "node:child_process";
import { read } from "node:fs";
import { writeFile } from "node:fs/promises";
import { Socket } from "node:net";
import { promisify } from "node:util";
import { MAX_MESSAGE } from "./fuse/wire.ts";
import { mounted } from "./mount_table.ts";

/** The parameters of a mount. */
export interface MountSpec {
  /** Absolute path. */
  readonly folder: string;
  /** The source that the mount table shows. */
  readonly source: string;
  /** The type of file system that the mount table shows. */
  readonly type: string;
  readonly readOnly: boolean;
  readonly allowOther: boolean;
  /** Readahead of sequential reads in KiB. */
  readonly readahead: number;
}

/** The messages to the mount process and from it. */
export type MountCommand = { readonly mount: readonly MountSpec[] } | { readonly unmount: true };
export type MountReply = { readonly mounted: true } | { readonly failed: string };

/**
 * The file descriptors of a mount in the mount process: its device, and the channel for its
 * requests.
 */
export const descriptorsOf = (index: number) => ({ device: 4 + 2 * index, channel: 5 + 2 * index });

/** Milliseconds that the programs `mount` and `umount` may take. */
const MAX_PROGRAM_MS = 10_000;
const rootMode = "40000";

export const reasonIn = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Mounts a folder and passes the kernel's requests to its channel. @throws Error */
export async function mount(
  spec: MountSpec,
  { device, channel }: ReturnType<typeof descriptorsOf>,
): Promise<MountRequests> {
  await runMount(spec, device);
  const requests = new MountRequests(device, channel);
  requests.start();
  await readAhead(spec).catch(() => undefined);
  return requests;
}

function runMount({ folder, source, type, readOnly, allowOther }: MountSpec, fd: number): Promise<void> {
  const ids = `user_id=${process.getuid?.() ?? 0},group_id=${process.getgid?.() ?? 0}`;
  const rights = `${readOnly ? "ro" : "rw"},nosuid,nodev${allowOther ? ",allow_other" : ""}`;
  // The device is file descriptor 3 of that program.
  const options = `fd=3,rootmode=${rootMode},${ids},${rights}`;
  const child = spawn("mount", ["-i", "-t", type, "-o", options, source, folder], {
    stdio: ["ignore", "ignore", "pipe", fd],
    timeout: MAX_PROGRAM_MS,
    env: { ...process.env, LC_ALL: "C" },
  });
  const said: Buffer[] = [];
  child.stderr?.on("data", (bytes: Buffer) => said.push(bytes));
  return new Promise((resolve, reject) => {
    child.on("error", (error: Error) => reject(new Error(`fuse: mount cannot be run: ${error.message}`)));
    child.on("close", (code) => {
      if (code === 0) resolve();
      else reject(new Error(Buffer.concat(said).toString().trim().split("\n")[0] || `mount ended with ${code}`));
    });
  });
}

/**
 * Sets a readahead of several blocks, if the system allows it. The kernel's default is half a
 * block.
 */
async function readAhead({ folder, type, readahead }: MountSpec): Promise<void> {
  const own = (await mounted(type)).find((found) => found.folder === folder);
  if (own !== undefined) await writeFile(`/sys/class/bdi/${own.device}/read_ahead_kb`, String(readahead));
}

const run = promisify(execFile);

/**
 * Unmounts a folder even if it is in use: pending writes are completed, and later operations fail.
 * With `force`, the node no longer replies to requests of the folder. Never rejects.
 */
export async function unmount(folder: string, { force = false } = {}): Promise<void> {
  const limits = { timeout: MAX_PROGRAM_MS, killSignal: "SIGKILL" } as const;
  const umount = (...flags: readonly string[]) => run("umount", ["-i", ...flags, folder], limits);
  const cutOff = () => umount("-f", "-l").catch(() => undefined);
  if (force) await cutOff();
  else
    await umount().catch(() =>
      run("sync", ["-f", folder], limits)
        .catch(() => undefined)
        .then(cutOff),
    );
}

/** Reads the requests of one mount in a thread of the pool. The node sends the replies. */
export class MountRequests {
  readonly ended: Promise<void>;
  /** Whether the mount has ended. */
  over = false;
  readonly #end = Promise.withResolvers<void>();
  readonly #fd: number;
  readonly #channel: Socket;
  readonly #free: Buffer[] = [];

  constructor(fd: number, channel: number) {
    this.ended = this.#end.promise;
    this.#fd = fd;
    this.#channel = new Socket({ fd: channel, readable: true, writable: true });
    this.#channel.on("error", () => undefined);
  }

  start(): void {
    this.#channel.resume();
    this.#next();
  }

  #next(): void {
    const buffer = this.#free.pop() ?? Buffer.allocUnsafeSlow(MAX_MESSAGE);
    read(this.#fd, buffer, 0, buffer.length, null, (error, length) => {
      if (error === null) {
        this.#next();
        this.#channel.write(buffer.subarray(0, length), () => this.#free.length < 8 && this.#free.push(buffer));
      } else if (error.code === "ENODEV" || error.code === "EBADF") this.#close();
      // The request was interrupted before it was read.
      else this.#next();
    });
  }

  #close(): void {
    this.over = true;
    this.#channel.destroy();
    this.#end.resolve();
  }
}
