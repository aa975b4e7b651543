/** A directory without an index: a page for people, JSON for programs. */
import { createHash } from "node:crypto";
import { directoryEntries, type UnixfsNode } from "modhost/node";
import type { ResponseFields } from "../../../core/types.ts";
import type { Asked } from "../asked.ts";
import { pageCacheControl } from "../headers/cache.ts";
import { contentHeaders } from "../headers/content.ts";
import { type ListedEntry, listingJson, listingPage, listingStyle, PAGE_VERSION } from "../page/listing.ts";
import { pagePolicy } from "../page/policy.ts";
import type { Found } from "../resolve.ts";

const version = createHash("sha256").update(`${PAGE_VERSION}${listingStyle}`).digest("hex").slice(0, 12);

/** Another version of the page has another tag. */
export const directoryTag = ({ text }: Pick<Found, "text">): string => `"DirIndex-${version}_CID-${text}"`;

const RAW = 0x55;
/** Characters that are sent together. */
const PIECE_LENGTH = 16 * 1024;

/** Sent as it is read: of a million entries only a few are held. */
export async function listingAnswer(asked: Asked, found: Found, directory: UnixfsNode): Promise<ResponseFields> {
  const { place, reading, wanted } = asked;
  const own = { cache_control: pageCacheControl(found), last_modified: undefined };
  const headers = { ...contentHeaders(asked, found, directoryTag(found)), ...own };
  const listed = entriesOf(directory, reading.read);
  const first = await listed.next();
  const entries = joined(first, listed);
  if (wanted.format === "json") {
    const described = { content_type: "application/json", x_content_type_options: "nosniff" };
    const etag = `"${found.text}.listing.json"`;
    return { headers: { ...headers, ...described, etag }, body: reading.body(together(listingJson(entries))) };
  }
  const described = { content_type: "text/html", content_security_policy: pagePolicy(listingStyle) };
  const mtime = directory.unixfs.mtime;
  const page = listingPage({ place, cid: found.text, changed: mtime, entries });
  return { headers: { ...headers, ...described }, body: reading.body(together(page)) };
}

async function* entriesOf(
  directory: UnixfsNode,
  read: Asked["reading"]["read"],
): AsyncGenerator<ListedEntry, void, undefined> {
  for await (const { name, cid, size } of directoryEntries(directory, read))
    yield { name, cid: cid.toString(), isFile: cid.code === RAW, size };
}

/** The first is read before the answer begins, so that a block that is missing has a status. */
async function* joined<T>(
  first: IteratorResult<T, void>,
  rest: AsyncGenerator<T, void, undefined>,
): AsyncGenerator<T, void, undefined> {
  if (first.done === true) return;
  yield first.value;
  yield* rest;
}

async function* together(texts: AsyncIterable<string>): AsyncGenerator<string, void, undefined> {
  let piece = "";
  for await (const text of texts) {
    piece += text;
    if (piece.length < PIECE_LENGTH) continue;
    yield piece;
    piece = "";
  }
  if (piece !== "") yield piece;
}
