/**
 * File names as "binary" text, with one character for each byte. Such a text can be joined and
 * split as a path without losing bytes. Each file system call converts it to bytes.
 */
import { lstat, readdir } from "node:fs/promises";
import { join, parse, sep } from "node:path";

export const binaryOf = (name: string | Buffer): string => Buffer.from(name as string).toString("latin1");
export const bytesOf = (binary: string): Buffer => Buffer.from(binary, "latin1");
/** Returns the text to show to people. */
export const shownOf = (binary: string): string => bytesOf(binary).toString();

const REPLACEMENT = "\ufffd";

/**
 * Returns the binary text of a path from the command line. Node.js replaces bytes in it that are
 * not UTF-8, so a name with replacement characters is looked up in its folder.
 *
 * @throws Error when several names match
 */
export async function findPath(path: string): Promise<string> {
  const binary = binaryOf(path);
  if (!path.includes(REPLACEMENT) || (await lstat(path).catch(() => undefined)) !== undefined) return binary;
  const { root } = parse(path);
  let found = binaryOf(root);
  for (const name of path.slice(root.length).split(sep)) {
    const names = name.includes(REPLACEMENT) ? await namesLike(found, name) : [];
    if (names.length > 1)
      throw new Error(`${path} may mean any of ${names.length} names: ${names.map(quoted).join(", ")}`);
    found = join(found, names[0] ?? binaryOf(name));
  }
  return found;
}

async function namesLike(folder: string, name: string): Promise<string[]> {
  const all = await readdir(bytesOf(folder), { encoding: "buffer" }).catch(() => []);
  return all.filter((each) => each.toString() === name).map(binaryOf);
}

/** Quotes a name for a shell. */
const quoted = (binary: string): string =>
  `$'${binary.replace(/[\\']|[^ -~]/g, (letter) => (letter < "\x7f" ? `\\${letter}` : `\\x${letter.charCodeAt(0).toString(16)}`))}'`;
