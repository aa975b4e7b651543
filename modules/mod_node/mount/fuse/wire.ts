/**
 * The messages between the kernel and a FUSE server, as linux/fuse.h 7.31 defines them:
 * little-endian, each preceded by its length.
 */

import type { UnixTime } from "../../formats/unixfs/format.ts";
import { byteText, textBytes } from "../../util/byte_text.ts";

export const opcodes = {
  lookup: 1,
  forget: 2,
  getattr: 3,
  setattr: 4,
  readlink: 5,
  symlink: 6,
  mknod: 8,
  mkdir: 9,
  unlink: 10,
  rmdir: 11,
  rename: 12,
  open: 14,
  read: 15,
  write: 16,
  statfs: 17,
  release: 18,
  fsync: 20,
  flush: 25,
  init: 26,
  opendir: 27,
  readdir: 28,
  releasedir: 29,
  fsyncdir: 30,
  access: 34,
  create: 35,
  interrupt: 36,
  destroy: 38,
  batchForget: 42,
  readdirplus: 44,
  rename2: 45,
} as const;

export const errno = {
  EPERM: 1,
  ENOENT: 2,
  EINTR: 4,
  EIO: 5,
  EEXIST: 17,
  EXDEV: 18,
  ENOTDIR: 20,
  EISDIR: 21,
  EINVAL: 22,
  EFBIG: 27,
  ENOSPC: 28,
  EROFS: 30,
  ENAMETOOLONG: 36,
  ENOSYS: 38,
  ENOTEMPTY: 39,
  EOPNOTSUPP: 95,
  ESTALE: 116,
} as const;
export type Errno = keyof typeof errno;

/** Capabilities, which are negotiated with the kernel. */
export const capabilities = {
  asyncRead: 1 << 0,
  bigWrites: 1 << 5,
  readdirplus: 1 << 13,
  readdirplusAuto: 1 << 14,
  /**
   * The kernel buffers writes and sends them in large parts, at the latest when a file is closed or
   * synced.
   */
  writebackCache: 1 << 16,
  /** Files are opened without a request. */
  noOpen: 1 << 17,
  parallelDirectories: 1 << 18,
  maxPages: 1 << 22,
  cacheSymlinks: 1 << 23,
} as const;

/** How an open directory may be cached. */
export const openFlags = { keepCache: 1 << 1, cacheDirectory: 1 << 3 } as const;

/** Bits for the fields that a setattr request sets. */
const attributeBits = { mode: 1 << 0, size: 1 << 3, mtime: 1 << 5, mtimeNow: 1 << 8 } as const;

export const renameFlags = { noReplace: 1 } as const;

export const kinds = { directory: 0o040000, file: 0o100000, symlink: 0o120000 } as const;
export type Kind = keyof typeof kinds;

/** Maximum length of the name of an entry in bytes: a limit of the system calls. */
export const MAX_NAME = 255;

/** Node id of the root of the mount. */
export const rootId = 1;

const requestHead = 40;
export const replyHead = 16;
const version = { major: 7, minor: 31 } as const;
/** Maximum number of bytes in one read or write. */
const MAX_TRANSFER = 1024 * 1024;
const pageSize = 4096;
/** Maximum readahead in bytes. Below it the system decides how much to read ahead. */
const MAX_READAHEAD = 2 ** 26;
/** Maximum size of a message in bytes: a write with its heads. */
export const MAX_MESSAGE = MAX_TRANSFER + pageSize;

const u64 = (bytes: Buffer, at: number): number => bytes.readUInt32LE(at) + bytes.readUInt32LE(at + 4) * 2 ** 32;

function putU64(bytes: Buffer, at: number, value: number): void {
  bytes.writeUInt32LE(value >>> 0, at);
  bytes.writeUInt32LE(Math.floor(value / 2 ** 32), at + 4);
}

/** A message from the kernel. Fields are read without a copy; `at` is an offset after the head. */
export class Request {
  readonly #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get opcode(): number {
    return this.#bytes.readUInt32LE(4);
  }
  /** Number of the request, for its reply and for an interrupt. */
  get unique(): number {
    return u64(this.#bytes, 8);
  }
  get node(): number {
    return u64(this.#bytes, 16);
  }
  u32(at: number): number {
    return this.#bytes.readUInt32LE(requestHead + at);
  }
  u64(at: number): number {
    return u64(this.#bytes, requestHead + at);
  }
  i64(at: number): number {
    return Number(this.#bytes.readBigInt64LE(requestHead + at));
  }
  /** Returns the rest of the message, as a view. */
  rest(at: number, length?: number): Buffer {
    return this.#bytes.subarray(requestHead + at, length === undefined ? undefined : requestHead + at + length);
  }
  /** Returns zero-terminated strings. */
  names(at: number): string[] {
    return byteText(this.rest(at)).split("\0");
  }
  name(at = 0): string {
    return this.names(at)[0] as string;
  }
}

/** The attributes of a node. */
export interface Attributes {
  readonly id: number;
  readonly kind: Kind;
  /** Permission bits. */
  readonly mode: number;
  /** Size in bytes. */
  readonly size: number;
  /** Time of the last change; undefined if the node has none. */
  readonly mtime?: UnixTime | undefined;
}

/** The attributes that a request sets; undefined for those that it does not change. */
export interface NewAttributes {
  readonly size: number | undefined;
  /** Permission bits. */
  readonly mode: number | undefined;
  readonly mtime: UnixTime | "now" | undefined;
}

/** Reads the attributes of a setattr request. Owners and other fields are ignored. */
export function newAttributes(request: Request): NewAttributes {
  const valid = request.u32(0);
  const at = { seconds: request.i64(40), nanoseconds: request.u32(60) };
  const mtime = (valid & attributeBits.mtimeNow) !== 0 ? "now" : at;
  return {
    size: (valid & attributeBits.size) !== 0 ? request.u64(16) : undefined,
    mode: (valid & attributeBits.mode) !== 0 ? request.u32(68) & 0o7777 : undefined,
    mtime: (valid & attributeBits.mtime) !== 0 ? mtime : undefined,
  };
}

/**
 * The values that all attributes have in common: the owner, and the number of seconds for which the
 * kernel may cache them.
 */
export interface ReplyContext {
  readonly uid: number;
  readonly gid: number;
  readonly seconds: number;
  /** Milliseconds since 1970: the time of nodes without a time of their own. */
  readonly time: number;
}

const UNKNOWN_INODE = 2 ** 32 - 1;
const attributeLength = 88;
const entryLength = 128;

/** Returns a reply with `length` bytes after its head. */
export function reply(unique: number, length: number, error = 0): Buffer {
  const bytes = Buffer.alloc(replyHead + length);
  writeReplyHead(bytes, unique, length, error);
  return bytes;
}

/** @param length number of bytes after the head */
export function writeReplyHead(bytes: Buffer, unique: number, length: number, error = 0): void {
  bytes.writeUInt32LE(replyHead + length, 0);
  bytes.writeInt32LE(-error, 4);
  putU64(bytes, 8, unique);
}

function putAttributes(bytes: Buffer, at: number, node: Attributes, context: ReplyContext): void {
  const { id, kind, mode, size, mtime } = node;
  putU64(bytes, at, id);
  putU64(bytes, at + 8, size);
  putU64(bytes, at + 16, Math.ceil(size / 512));
  const seconds = Math.floor(context.time / 1000);
  for (const time of [24, 32, 40]) putU64(bytes, at + time, seconds);
  if (mtime !== undefined) {
    bytes.writeBigInt64LE(BigInt.asIntN(64, BigInt(mtime.seconds)), at + 32);
    bytes.writeUInt32LE(mtime.nanoseconds, at + 52);
  }
  bytes.writeUInt32LE(kinds[kind] | mode, at + 60);
  bytes.writeUInt32LE(1, at + 64);
  bytes.writeUInt32LE(context.uid, at + 68);
  bytes.writeUInt32LE(context.gid, at + 72);
  bytes.writeUInt32LE(pageSize, at + 80);
}

function putEntry(bytes: Buffer, at: number, node: Attributes, context: ReplyContext): void {
  putU64(bytes, at, node.id);
  putU64(bytes, at + 16, context.seconds);
  putU64(bytes, at + 24, context.seconds);
  putAttributes(bytes, at + 40, node, context);
}

export function attributesReply(unique: number, node: Attributes, context: ReplyContext): Buffer {
  const bytes = reply(unique, 16 + attributeLength);
  putU64(bytes, replyHead, context.seconds);
  putAttributes(bytes, replyHead + 16, node, context);
  return bytes;
}

/** @param opened whether the entry was also opened */
export function entryReply(unique: number, node: Attributes, context: ReplyContext, opened = false): Buffer {
  const bytes = reply(unique, entryLength + (opened ? 16 : 0));
  putEntry(bytes, replyHead, node, context);
  if (opened) bytes.writeUInt32LE(openFlags.keepCache, replyHead + entryLength + 8);
  return bytes;
}

export function openReply(unique: number, handle: number, flags: number): Buffer {
  const bytes = reply(unique, 16);
  putU64(bytes, replyHead, handle);
  bytes.writeUInt32LE(flags, replyHead + 8);
  return bytes;
}

export function writtenReply(unique: number, length: number): Buffer {
  const bytes = reply(unique, 8);
  bytes.writeUInt32LE(length, replyHead);
  return bytes;
}

/** Limits of the kernel's requests. */
export interface RequestLimits {
  /** Maximum number of bytes of one read or write, up to 1 MiB. */
  readonly bytes: number;
  /** Maximum number of background requests: readahead, and writes of buffered data. */
  readonly background: number;
}

/** Returns the reply to `init`. @throws Error if the kernel is too old */
export function initReply(request: Request, wanted: number, limits: RequestLimits): Buffer {
  const major = request.u32(0);
  const minor = request.u32(4);
  const offered = request.u32(12);
  if (major !== version.major || minor < 23) throw new Error(`the kernel speaks version ${major}.${minor} of FUSE`);
  const bytes = reply(request.unique, 64);
  const put = (at: number, value: number) => bytes.writeUInt32LE(value >>> 0, replyHead + at);
  put(0, version.major);
  put(4, Math.min(minor, version.minor));
  put(8, MAX_READAHEAD);
  put(12, wanted & offered);
  bytes.writeUInt16LE(limits.background, replyHead + 16);
  bytes.writeUInt16LE(Math.ceil(limits.background * 0.75), replyHead + 18);
  put(20, limits.bytes);
  put(24, 1);
  bytes.writeUInt16LE(limits.bytes / pageSize, replyHead + 28);
  return bytes;
}

/** Returns the space of the file system. All of it is free. */
export function statfsReply(unique: number, free: number): Buffer {
  const bytes = reply(unique, 80);
  const blocks = Math.floor(free / pageSize);
  for (const at of [0, 8, 16]) putU64(bytes, replyHead + at, blocks);
  bytes.writeUInt32LE(pageSize, replyHead + 40);
  bytes.writeUInt32LE(MAX_NAME, replyHead + 44);
  bytes.writeUInt32LE(pageSize, replyHead + 48);
  return bytes;
}

/** An entry of a directory. */
export interface DirectoryEntry {
  readonly name: string;
  /** Kind of the entry; undefined if it is not known yet. */
  readonly kind: Kind | undefined;
  /**
   * Returns the node of the entry and counts it as returned. Without it, the kernel looks the entry
   * up later.
   */
  readonly node?: (() => Attributes) | undefined;
}

/** Encodes directory entries into at most `limit` bytes. */
export class EntryPage {
  readonly #bytes: Buffer;
  readonly #context: ReplyContext | undefined;
  #at = replyHead;

  /** With `context`, the nodes of the entries are included. */
  constructor(limit: number, context?: ReplyContext) {
    this.#bytes = Buffer.alloc(replyHead + limit);
    this.#context = context;
  }

  /**
   * Adds an entry; `next` is the number at which the listing continues after it. Returns false if
   * there is no room.
   */
  add({ name, kind, node }: DirectoryEntry, next: number): boolean {
    const bytes = this.#bytes;
    const nodeLength = this.#context === undefined ? 0 : entryLength;
    const written = textBytes(name);
    const nameLength = written.length;
    const length = nodeLength + Math.ceil((24 + nameLength) / 8) * 8;
    if (this.#at + length > bytes.length) return false;
    const attributes = this.#context && node?.();
    if (this.#context !== undefined && attributes !== undefined) putEntry(bytes, this.#at, attributes, this.#context);
    const at = this.#at + nodeLength;
    // Programs ignore entries with the inode number 0, as if they were deleted.
    putU64(bytes, at, attributes?.id ?? UNKNOWN_INODE);
    putU64(bytes, at + 8, next);
    bytes.writeUInt32LE(nameLength, at + 16);
    bytes.writeUInt32LE(kind === undefined ? 0 : kinds[kind] >> 12, at + 20);
    bytes.set(written, at + 24);
    this.#at += length;
    return true;
  }

  reply(unique: number): Buffer {
    writeReplyHead(this.#bytes, unique, this.#at - replyHead);
    return this.#bytes.subarray(0, this.#at);
  }
}
