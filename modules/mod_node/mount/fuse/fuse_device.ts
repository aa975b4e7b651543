/**
 * The kernel's side of a mount, as the node has it: answers go there at once, and not through the process that waits
 * for requests. The memory of what is read is copied once on its way.
 */
import { closeSync, openSync, writevSync } from "node:fs";
import { NodeError } from "../../util/errors.ts";

const device = "/dev/fuse";
/** Whoever has asked has left, or the mount is taken away. */
const expected: ReadonlySet<string | undefined> = new Set(["ENOENT", "ENODEV", "ENOTCONN", "EINTR"]);

export class FuseDevice {
  /** To be handed to the process that mounts it and reads the requests. */
  readonly fd: number;
  #closed = false;

  /** As many as there are mounts to be. @throws NodeError where there is no such device, or nobody may mount it */
  static open(count: number): readonly FuseDevice[] {
    const opened: FuseDevice[] = [];
    try {
      while (opened.length < count) opened.push(new FuseDevice(openDevice()));
      return opened;
    } catch (error) {
      for (const opening of opened) opening.close();
      throw error;
    }
  }

  private constructor(fd: number) {
    this.fd = fd;
  }

  /** The parts of one answer, head first. Nobody needs them afterwards. @throws what the kernel says of a wrong one */
  reply(parts: readonly Uint8Array[]): void {
    // The number of the descriptor may be another file's by now.
    if (this.#closed) return;
    try {
      writevSync(this.fd, parts);
    } catch (error) {
      if (!expected.has((error as NodeJS.ErrnoException).code)) throw error;
    }
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    closeSync(this.fd);
  }
}

function openDevice(): number {
  const user = process.getuid?.();
  if (user !== undefined && user !== 0) throw new NodeError(`fuse: only root can mount, and this is user ${user}`);
  try {
    return openSync(device, "r+");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EMFILE" || code === "ENFILE") throw new NodeError(`fuse: too many open files: ${device}`);
    const reason = code === "EACCES" || code === "EPERM" ? "permission denied" : "fuse device not found";
    throw new NodeError(`fuse: ${reason}: ${device}; load the kernel's module \`fuse\`, or allow the device`);
  }
}
