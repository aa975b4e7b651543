/** Mounting and unmounting, and the device behind a mount: for the process that holds it. */
import { execFile, spawn } from "node:child_process";
import { closeSync, openSync, read, writeSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { Socket } from "node:net";
import { promisify } from "node:util";
import { errno, longestMessage, opcodes, Request, reply, replyHead, uniqueOf } from "./fuse/wire.ts";
import { mounted } from "./mount_table.ts";

/** What is to be mounted. */
export interface Place {
  /** Absolute. */
  readonly folder: string;
  /** Shown as the source of the mount. */
  readonly source: string;
  /** Type of the file system, as it is shown. */
  readonly type: string;
  readonly readOnly: boolean;
  readonly allowOther: boolean;
  /** Kibibytes that are read ahead of who reads in order. */
  readonly readahead: number;
}

/** What the process is told, and what it tells. */
export type Order = { readonly mount: readonly Place[] } | { readonly unmount: true };
export type Answer = { readonly mounted: true } | { readonly failed: string };

/** Descriptors of the channels that carry the requests, in order of the places. */
export const firstChannel = 4;

/** They have no answer. */
const unanswered: ReadonlySet<number> = new Set([opcodes.forget, opcodes.batchForget, opcodes.interrupt]);

const devicePath = "/dev/fuse";
/** Milliseconds for a program that mounts or unmounts. */
const patience = 10_000;
const rootMode = "40000";

export const reasonIn = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Mounts a place, and carries what the kernel asks over the channel with this descriptor. @throws Error */
export async function mount(place: Place, channel: number): Promise<Device> {
  const fd = openDevice();
  const device = new Device(fd, channel);
  try {
    await runMount(place, fd);
  } catch (error) {
    // Nothing was mounted: nobody reads it.
    closeSync(fd);
    throw error;
  }
  device.start();
  await readAhead(place).catch(() => undefined);
  return device;
}

function openDevice(): number {
  try {
    return openSync(devicePath, "r+");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const reason = code === "EACCES" || code === "EPERM" ? "permission denied" : "fuse device not found";
    throw new Error(`fuse: ${reason}: ${devicePath}; load the kernel's module \`fuse\` or allow the device`);
  }
}

function runMount({ folder, source, type, readOnly, allowOther }: Place, fd: number): Promise<void> {
  const ids = `user_id=${process.getuid?.() ?? 0},group_id=${process.getgid?.() ?? 0}`;
  const rights = `${readOnly ? "ro" : "rw"},nosuid,nodev${allowOther ? ",allow_other" : ""}`;
  // The program has the device as its descriptor 3.
  const options = `fd=3,rootmode=${rootMode},${ids},${rights}`;
  const child = spawn("mount", ["-i", "-t", type, "-o", options, source, folder], {
    stdio: ["ignore", "ignore", "pipe", fd],
    timeout: patience,
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

/** Windows that hold several blocks: the kernel's own is half of one. Only where the system lets us. */
async function readAhead({ folder, type, readahead }: Place): Promise<void> {
  const own = (await mounted(type)).find((found) => found.folder === folder);
  if (own !== undefined) await writeFile(`/sys/class/bdi/${own.device}/read_ahead_kb`, String(readahead));
}

const run = promisify(execFile);

/**
 * Takes a mount away, from those who use it too: what they do there fails from then on. `force`: nobody answers there
 * any more. Never rejects.
 */
export async function unmount(folder: string, { force = false } = {}): Promise<void> {
  const umount = (...flags: readonly string[]) =>
    run("umount", ["-i", ...flags, folder], { timeout: patience, killSignal: "SIGKILL" });
  const cutOff = () => umount("-f", "-l").catch(() => undefined);
  await (force ? cutOff() : umount().catch(cutOff));
}

/** Requests of one mount, read by a thread of the pool, and the answers to them. */
export class Device {
  readonly ended: Promise<void>;
  readonly #end = Promise.withResolvers<void>();
  readonly #fd: number;
  readonly #channel: Socket;
  readonly #free: Buffer[] = [];
  /** Requests without an answer. */
  readonly #asked = new Set<number>();
  #answers = Buffer.allocUnsafeSlow(2 * longestMessage);
  #filled = 0;

  constructor(fd: number, channel: number) {
    this.ended = this.#end.promise;
    this.#fd = fd;
    this.#channel = new Socket({
      fd: channel,
      readable: true,
      writable: true,
      onread: {
        buffer: () => this.#room(),
        callback: (length) => {
          this.#answer(length);
          return true;
        },
      },
    });
    this.#channel.on("error", () => undefined);
    this.#channel.on("close", () => this.#refuseAll());
  }

  start(): void {
    this.#channel.resume();
    this.#next();
  }

  #next(): void {
    const buffer = this.#free.pop() ?? Buffer.allocUnsafeSlow(longestMessage);
    read(this.#fd, buffer, 0, buffer.length, null, (error, length) => {
      if (error === null) {
        this.#next();
        this.#ask(buffer, length);
      } else if (error.code === "ENODEV" || error.code === "EBADF") this.#close();
      // A request was taken back before it was read.
      else this.#next();
    });
  }

  #ask(buffer: Buffer, length: number): void {
    const request = new Request(buffer);
    if (!unanswered.has(request.opcode)) this.#asked.add(request.unique);
    if (this.#channel.destroyed) {
      this.#refuseAll();
      return;
    }
    const done = () => void (this.#free.length < 4 && this.#free.push(buffer));
    this.#channel.write(buffer.subarray(0, length), done);
  }

  /** Where the next bytes from the node go: behind those of an answer that is not whole yet. */
  #room(): Buffer {
    return this.#answers.subarray(this.#filled);
  }

  #answer(length: number): void {
    const answers = this.#answers;
    const end = this.#filled + length;
    let at = 0;
    while (end - at >= 4) {
      const size = answers.readUInt32LE(at);
      if (end - at < size) break;
      this.#asked.delete(uniqueOf(answers, at));
      this.#write(answers, at, size);
      at += size;
    }
    if (at > 0) answers.copyWithin(0, at, end);
    this.#filled = end - at;
  }

  /** The node is gone: who waits for it would wait for ever, and cannot even be killed. */
  #refuseAll(): void {
    for (const unique of this.#asked) this.#write(reply(unique, 0, errno.EIO), 0, replyHead);
    this.#asked.clear();
  }

  #write(bytes: Buffer, at: number, length: number): void {
    try {
      writeSync(this.#fd, bytes, at, length);
    } catch {
      // Whoever has asked has gone, or the mount has.
    }
  }

  #close(): void {
    this.#channel.destroy();
    this.#end.resolve();
  }
}
