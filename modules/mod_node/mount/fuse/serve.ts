/**
 * Serves the kernel's requests to one mount from a file system. The requests come from the mount
 * process.
 */
import type { Duplex } from "node:stream";
import { byteLength } from "../../util/byte_text.ts";
import { type Changes, type FileSystem, FuseError, type OpenListing } from "./file_system.ts";
import { Framing } from "./framing.ts";
import type { FuseDevice } from "./fuse_device.ts";
import {
  attributesReply,
  capabilities,
  EntryPage,
  type Errno,
  entryReply,
  errno,
  initReply,
  kinds,
  MAX_NAME,
  newAttributes,
  opcodes,
  openReply,
  type ReplyContext,
  Request,
  renameFlags,
  reply,
  replyHead,
  statfsReply,
  writeReplyHead,
  writtenReply,
} from "./wire.ts";

const common =
  capabilities.asyncRead |
  capabilities.bigWrites |
  capabilities.readdirplus |
  capabilities.readdirplusAuto |
  capabilities.noOpen |
  capabilities.parallelDirectories |
  capabilities.maxPages;

/** Called with unexpected failures. */
export type OnFault = (error: unknown) => void;

/** Resolves when the channel and the file system are closed. */
export async function serve(requests: Duplex, device: FuseDevice, files: FileSystem, onFault: OnFault): Promise<void> {
  const server = new FuseServer(device, files, onFault);
  const framing = new Framing(files.buffers);
  requests.on("data", (bytes: Buffer) => {
    for (const message of framing.take(bytes)) server.take(new Request(message));
  });
  await new Promise<void>((resolve) => {
    requests.on("error", () => resolve());
    requests.on("close", () => resolve());
  });
  await server.close();
}

type PendingReply = Promise<Buffer | undefined> | Buffer | undefined;

class FuseServer {
  readonly #device: FuseDevice;
  readonly #files: FileSystem;
  readonly #onFault: OnFault;
  /** Running requests by number. They can be interrupted. */
  readonly #open = new Map<number, AbortController>();
  readonly #listings = new Map<number, OpenListing>();
  #lastHandle = 0;
  readonly #context: ReplyContext;

  constructor(device: FuseDevice, files: FileSystem, onFault: OnFault) {
    this.#device = device;
    this.#files = files;
    this.#onFault = onFault;
    const uid = process.getuid?.() ?? 0;
    const gid = process.getgid?.() ?? 0;
    this.#context = { uid, gid, seconds: files.seconds, time: Date.now() };
  }

  take(request: Request): void {
    const { opcode, unique } = request;
    if (opcode === opcodes.forget) this.#files.forget(request.node, request.u64(0));
    else if (opcode === opcodes.batchForget) this.#forgetMany(request);
    // An interrupt has no reply. It ends the request, whose reply may have been sent already.
    else if (opcode === opcodes.interrupt) this.#open.get(request.u64(0))?.abort();
    else {
      const leaving = new AbortController();
      this.#open.set(unique, leaving);
      void this.#respond(request, leaving.signal).finally(() => this.#open.delete(unique));
    }
  }

  async close(): Promise<void> {
    for (const leaving of this.#open.values()) leaving.abort();
    for (const listing of this.#listings.values()) listing.close();
    await this.#files.close();
  }

  async #respond(request: Request, signal: AbortSignal): Promise<void> {
    const { unique } = request;
    let response: Buffer | undefined;
    try {
      response = await raceSignal(this.#run(request, signal), signal);
    } catch (error) {
      response = reply(unique, 0, errno[this.#errnoOf(error, signal)]);
    }
    if (response !== undefined) this.#send([response]);
  }

  #send(parts: readonly Uint8Array[]): void {
    try {
      this.#device.reply(parts);
    } catch (error) {
      this.#onFault(error);
    }
  }

  #errnoOf(error: unknown, signal: AbortSignal): Errno {
    if (signal.aborted) return "EINTR";
    if (error instanceof FuseError) return error.errno;
    this.#onFault(error);
    return "EIO";
  }

  #forgetMany(request: Request): void {
    const count = request.u32(0);
    for (let at = 8; at < 8 + 16 * count; at += 16) this.#files.forget(request.u64(at), request.u64(at + 8));
  }

  /** Returns the reply, or undefined if it was sent already. */
  #run(request: Request, signal: AbortSignal): PendingReply {
    const { unique, node } = request;
    const files = this.#files;
    switch (request.opcode) {
      case opcodes.init:
        return initReply(request, common | files.capabilities, files.limits);
      case opcodes.lookup:
        return this.#entry(unique, files.lookup(node, nameOf(request), signal));
      case opcodes.getattr:
        return this.#attributes(unique, node, signal);
      case opcodes.readlink:
        return files.readlink(node, signal).then((target) => bytesReply(unique, target));
      case opcodes.read:
        return this.#read(request, signal);
      case opcodes.opendir:
        return this.#openDirectory(request);
      case opcodes.readdir:
        return this.#list(request, undefined, signal);
      case opcodes.readdirplus:
        return this.#list(request, this.#context, signal);
      case opcodes.releasedir:
        this.#listings.get(request.u64(0))?.close();
        this.#listings.delete(request.u64(0));
        return reply(unique, 0);
      case opcodes.statfs:
        return files.free().then((free) => statfsReply(unique, free));
      case opcodes.release:
      case opcodes.destroy:
        return reply(unique, 0);
      case opcodes.fsyncdir:
        return files.changes === undefined ? reply(unique, 0) : this.#change(request, files.changes, signal);
      default:
        if (files.changes !== undefined) return this.#change(request, files.changes, signal);
        throw new FuseError("ENOSYS");
    }
  }

  #change(request: Request, changes: Changes, signal: AbortSignal): PendingReply {
    const { unique, node } = request;
    const done = (work: Promise<void>) => work.then(() => reply(unique, 0));
    switch (request.opcode) {
      case opcodes.write: {
        const size = request.u32(16);
        const bytes = request.rest(40, size);
        return changes.write(node, request.u64(8), bytes).then(() => writtenReply(unique, size));
      }
      case opcodes.setattr:
        return this.#setAttributes(request, changes, signal);
      case opcodes.create:
        return this.#entry(unique, changes.create(node, nameOf(request, 16), signal), true);
      case opcodes.mknod:
        if ((request.u32(0) & 0o170000) !== kinds.file) throw new FuseError("EPERM");
        return this.#entry(unique, changes.create(node, nameOf(request, 16), signal));
      case opcodes.mkdir:
        return this.#entry(unique, changes.makeDirectory(node, nameOf(request, 8), signal));
      case opcodes.symlink: {
        const [name = "", target = ""] = request.names(0);
        return this.#entry(unique, changes.makeSymlink(node, checked(name), target, signal));
      }
      case opcodes.unlink:
        return done(changes.remove(node, nameOf(request), "file", signal));
      case opcodes.rmdir:
        return done(changes.remove(node, nameOf(request), "directory", signal));
      case opcodes.rename:
        return done(this.#rename(request, changes, { at: 8, flags: 0, signal }));
      case opcodes.rename2:
        return done(this.#rename(request, changes, { at: 16, flags: request.u32(8), signal }));
      case opcodes.flush:
        return done(changes.settle(node, { durable: false }));
      case opcodes.fsync:
      case opcodes.fsyncdir:
        return done(changes.settle(node, { durable: true }));
      default:
        throw new FuseError("ENOSYS");
    }
  }

  async #setAttributes(request: Request, changes: Changes, signal: AbortSignal): Promise<Buffer> {
    const { unique, node } = request;
    const { size, mode, mtime } = newAttributes(request);
    if (size !== undefined) await changes.resize(node, size, signal);
    if (mode !== undefined || mtime !== undefined) await changes.setModeAndTime(node, { mode, mtime }, signal);
    return this.#attributes(unique, node, signal);
  }

  #rename(
    request: Request,
    changes: Changes,
    { at, flags, signal }: { readonly at: number; readonly flags: number; readonly signal: AbortSignal },
  ): Promise<void> {
    if ((flags & ~renameFlags.noReplace) !== 0) throw new FuseError("EINVAL");
    const [was = "", name = ""] = request.names(at);
    const to = { parent: request.u64(0), name: checked(name) };
    return changes.rename({ parent: request.node, name: was }, to, { replace: flags === 0, signal });
  }

  async #entry(unique: number, finding: ReturnType<FileSystem["lookup"]>, opened = false): Promise<Buffer> {
    return entryReply(unique, await finding, this.#context, opened);
  }

  async #attributes(unique: number, node: number, signal: AbortSignal): Promise<Buffer> {
    return attributesReply(unique, await this.#files.attributes(node, signal), this.#context);
  }

  async #read(request: Request, signal: AbortSignal): Promise<undefined> {
    const { unique, node } = request;
    const reading = this.#files.read(node, request.u64(8), request.u32(16), signal);
    const { pieces, release } = await raceSignal(reading, signal);
    const head = Buffer.allocUnsafe(replyHead);
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
    writeReplyHead(head, unique, length);
    this.#send([head, ...pieces]);
    release?.();
  }

  async #openDirectory({ unique, node }: Request): Promise<Buffer> {
    const listing = await this.#files.list(node);
    this.#lastHandle += 1;
    this.#listings.set(this.#lastHandle, listing);
    return openReply(unique, this.#lastHandle, this.#files.directoryFlags);
  }

  async #list(request: Request, context: ReplyContext | undefined, signal: AbortSignal): Promise<Buffer> {
    const listing = this.#listings.get(request.u64(0));
    if (listing === undefined) throw new FuseError("EINVAL");
    const page = new EntryPage(request.u32(16), context);
    let next = request.u64(8);
    for await (const entry of listing.from(next, context !== undefined, signal)) {
      next += 1;
      if (!page.add(entry, next)) break;
    }
    return page.reply(request.unique);
  }
}

function bytesReply(unique: number, bytes: Uint8Array): Buffer {
  const message = reply(unique, bytes.length);
  message.set(bytes, replyHead);
  return message;
}

const nameOf = (request: Request, at = 0): string => checked(request.name(at));

function checked(name: string): string {
  if (byteLength(name) > MAX_NAME) throw new FuseError("ENAMETOOLONG");
  return name;
}

/** An interrupted caller gets its error at once, even if the work continues. */
function raceSignal<T>(work: Promise<T> | T, signal: AbortSignal): Promise<T> | T {
  if (!(work instanceof Promise)) return work;
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    work.then(resolve, reject);
  });
}
