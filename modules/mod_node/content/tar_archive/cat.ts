/** Writes DAGs of `tar/add` as tar archives, for `tar/cat`. */
import type { CID } from "multiformats/cid";
import { padding } from "../../formats/tar/write.ts";
import { failure } from "../../util/errors.ts";
import { type ObjectNode, readObject } from "../dag/object/node.ts";
import type { ReadBlock } from "../dag/reader.ts";
import { isDirectory } from "../unixfs/node.ts";
import { openFile } from "../unixfs/open.ts";
import { readFile } from "../unixfs/read.ts";
import { contentLink, rootData } from "./add.ts";

const zeros = new Uint8Array(512);

/** @throws NodeError for a root that `tar/add` has not made */
export function requireArchive({ data }: ObjectNode): void {
  if (data === undefined || Buffer.compare(data, rootData) !== 0)
    throw failure("TAR_INVALID", { reason: "not an IPFS tarchive" });
}

/**
 * Yields every entry with its header, content and padding, links in order, without an end marker.
 * As in the reference, entries below an entry with content are skipped.
 */
export async function* catArchive(
  root: ObjectNode,
  read: ReadBlock,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  const stack: CID[] = cidsOf(root);
  for (let cid = stack.pop(); cid !== undefined; cid = stack.pop()) {
    signal?.throwIfAborted();
    const entry = await readObject(cid, read);
    yield* padded(entry.data ?? zeros.subarray(0, 0));
    const content = entry.links.find(({ name }) => name === contentLink);
    if (content !== undefined) yield* contentOf(content.cid, read);
    else for (const below of cidsOf(entry)) stack.push(below);
  }
}

/** Adds the padding of global PAX records, which the reference omits. */
function* padded(header: Uint8Array): Generator<Uint8Array, void, undefined> {
  if (header.length > 0) yield header;
  if (padding(header.length) > 0) yield zeros.subarray(0, padding(header.length));
}

/** The CIDs of the links in reverse order, for a stack. */
const cidsOf = ({ links }: ObjectNode): CID[] => links.map(({ cid }) => cid).reverse();

async function* contentOf(cid: CID, read: ReadBlock): AsyncGenerator<Uint8Array, void, undefined> {
  await readObject(cid, read);
  const file = await openFile(cid, read);
  if (isDirectory(file)) throw failure("IS_DIRECTORY");
  let length = 0;
  for await (const piece of readFile(file, read)) {
    length += piece.length;
    yield piece;
  }
  if (padding(length) > 0) yield zeros.subarray(0, padding(length));
}
