/** Trees of files as tar archives, with the layout of the reference (storage section 3, "get"). */
import { posix } from "node:path";
import type { ReadBlock } from "../dag/reader.ts";
import { NodeError } from "../errors.ts";
import { entries } from "./list.ts";
import { fileSize, isDirectory, type TreeNode } from "./node.ts";
import { openFile } from "./open.ts";
import { readFile } from "./read.ts";

const block = 512;
const trailer = new Uint8Array(2 * block);

interface Entry {
  readonly name: string;
  /** "0" file, "2" symlink, "5" directory, "x" further facts of the entry that follows. */
  readonly type: "0" | "2" | "5" | "x";
  readonly mode: number;
  readonly size: number;
  readonly target?: string;
  /** Seconds since the epoch. */
  readonly mtime: number;
}

/** `name` is what the root is called; nothing is held but a few blocks of a file. */
export async function* tarOf(
  root: TreeNode,
  name: string,
  read: ReadBlock,
): AsyncGenerator<Uint8Array, void, undefined> {
  yield* entriesOf(root, name, read);
  yield trailer;
}

const now = () => Math.floor(Date.now() / 1000);

async function* entriesOf(node: TreeNode, name: string, read: ReadBlock): AsyncGenerator<Uint8Array, void, undefined> {
  const { unixfs } = node;
  if (isDirectory(node)) {
    yield header({ name, type: "5", mode: 0o777, size: 0, mtime: now() });
    for await (const link of entries(node, read)) {
      yield* entriesOf(await openFile(link.cid, read), posix.join(name, link.name), read);
    }
    return;
  }
  if (unixfs.type === "Symlink") {
    const target = Buffer.from(unixfs.data ?? []).toString();
    yield header({ name, type: "2", mode: 0o777, size: 0, target, mtime: 0 });
    return;
  }
  const size = fileSize(node);
  yield header({ name, type: "0", mode: 0o644, size, mtime: now() });
  let written = 0;
  for await (const piece of readFile(node, read)) {
    written += piece.length;
    yield piece;
  }
  if (written < size) throw new NodeError(`archive/tar: missed writing ${size - written} bytes`);
  if (size % block > 0) yield trailer.subarray(0, block - (size % block));
}

/** A header; with one in front that holds what it has no room for. */
function header(entry: Entry): Uint8Array {
  const facts = factsOf(entry);
  if (facts.length === 0) return ustar(entry, splitName(entry.name) as NameParts);
  const text = Buffer.from(facts.map(record).join(""));
  const folder = posix.join(posix.dirname(entry.name), "PaxHeaders.0", posix.basename(entry.name));
  const ahead = { name: "", type: "x", mode: 0, size: text.length, mtime: 0 } as const;
  const padding = trailer.subarray(0, (block - (text.length % block)) % block);
  const short = (name: string): NameParts => ({ prefix: "", name: ascii(name).slice(0, nameRoom) });
  const { name } = short(folder);
  return Buffer.concat([
    ustar(ahead, { prefix: "", name: name.replace(/\/+$/, "") }),
    text,
    padding,
    ustar(entry, short(entry.name)),
  ]);
}

const nameRoom = 100;
const prefixRoom = 155;
/** Twelve bytes of octal digits, the last one empty. */
const largestSize = 0o77777777777;

const ascii = (text: string): string => text.replace(/[^\p{ASCII}]/gu, "");
const isAscii = (text: string): boolean => /^\p{ASCII}*$/u.test(text);

/** What goes beyond the fields of the plain header. */
function factsOf({ name, target = "", size }: Entry): [key: string, value: string][] {
  const facts: [string, string][] = [];
  if (target.length > nameRoom || !isAscii(target)) facts.push(["linkpath", target]);
  if (!isAscii(name) || splitName(name) === undefined) facts.push(["path", name]);
  if (size > largestSize) facts.push(["size", String(size)]);
  return facts;
}

interface NameParts {
  readonly prefix: string;
  readonly name: string;
}

/** A long name is cut at a slash, as far to the right as there is room; undefined when it cannot be. */
function splitName(name: string): NameParts | undefined {
  if (name.length <= nameRoom) return { prefix: "", name };
  const at = name.lastIndexOf("/", prefixRoom);
  const rest = name.length - at - 1;
  if (at <= 0 || rest === 0 || rest > nameRoom) return undefined;
  return { prefix: name.slice(0, at), name: name.slice(at + 1) };
}

/** `<length> <key>=<value>\n`; the length counts its own digits. */
function record([key, value]: readonly [string, string]): string {
  const rest = Buffer.byteLength(key) + Buffer.byteLength(value) + 3;
  let length = rest + String(rest).length;
  length = rest + String(length).length;
  return `${length} ${key}=${value}\n`;
}

function ustar({ type, mode, size, target = "", mtime }: Entry, { prefix, name }: NameParts): Uint8Array {
  const bytes = Buffer.alloc(block);
  const octal = (value: number, at: number, width: number) =>
    bytes.write(value.toString(8).padStart(width - 1, "0"), at, "latin1");
  bytes.write(name, 0, "latin1");
  octal(mode, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size > largestSize ? 0 : size, 124, 12);
  octal(mtime, 136, 12);
  bytes.write(" ".repeat(8), 148, "latin1");
  bytes.write(type, 156, "latin1");
  bytes.write(ascii(target).slice(0, nameRoom), 157, "latin1");
  bytes.write("ustar\u000000", 257, "latin1");
  // Numbers of devices; a header that goes ahead has none.
  if (type !== "x") for (const at of [329, 337]) octal(0, at, 8);
  bytes.write(prefix, 345, "latin1");
  const sum = bytes.reduce((total, byte) => total + byte, 0);
  bytes.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return bytes;
}
