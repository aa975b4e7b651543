/**
 * The FUSE device of a mount, as the node uses it. Replies go to the kernel directly, and not
 * through the process that waits for requests. The bytes of a read are copied once on the way.
 */
import { closeSync, openSync, writevSync } from "node:fs";
import { failure } from "../../util/errors.ts";

const device = "/dev/fuse";
/** Errors if the caller was interrupted, or if the mount no longer exists. */
const expected: ReadonlySet<string | undefined> = new Set(["ENOENT", "ENODEV", "ENOTCONN", "EINTR"]);

export class FuseDevice {
  /**
   * File descriptor of the device. The process that mounts it and reads the requests gets it, too.
   */
  readonly fd: number;
  #closed = false;

  /**
   * Opens one device for each mount. @throws NodeError if there is no such device, or if this user
   * may not mount
   */
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

  /**
   * Writes the parts of one reply, head first. They are no longer used afterwards. @throws the
   * kernel's error for a malformed reply
   */
  reply(parts: readonly Uint8Array[]): void {
    // The descriptor may belong to another file by now.
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
  if (user !== undefined && user !== 0)
    throw failure("MOUNT_FAILED", { reason: `fuse: only root can mount, and this is user ${user}` });
  try {
    return openSync(device, "r+");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EMFILE" || code === "ENFILE")
      throw failure("MOUNT_FAILED", { reason: `fuse: too many open files: ${device}` });
    const reason = code === "EACCES" || code === "EPERM" ? "permission denied" : "fuse device not found";
    throw failure("MOUNT_FAILED", {
      reason: `fuse: ${reason}: ${device}; load the kernel's module \`fuse\`, or allow the device`,
    });
  }
}
