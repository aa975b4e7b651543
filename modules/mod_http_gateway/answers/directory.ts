/** A directory without an index: a page for people, JSON for programs. */
import { createHash } from "node:crypto";
import { dateOf, directoryEntries, type UnixfsNode } from "modhost/node";
import type { ResponseFields } from "../../../core/types.ts";
import type { Asked } from "../asked.ts";
import { pageCacheControl } from "../headers/cache.ts";
import { contentHeaders } from "../headers/content.ts";
import { listingJson, listingPage, listingStyle, PAGE_VERSION } from "../page/listing.ts";
import { pagePolicy } from "../page/policy.ts";
import type { Found } from "../resolve.ts";

const version = createHash("sha256").update(`${PAGE_VERSION}${listingStyle}`).digest("hex").slice(0, 12);

/** Another version of the page has another tag. */
export const directoryTag = ({ text }: Pick<Found, "text">): string => `"DirIndex-${version}_CID-${text}"`;

/** Sent as it is read: of a million entries only a few are held. */
export async function listingAnswer(asked: Asked, found: Found, directory: UnixfsNode): Promise<ResponseFields> {
  const { place, reading, wanted } = asked;
  const own = { cache_control: pageCacheControl(found), last_modified: undefined };
  const headers = { ...contentHeaders(asked, found, directoryTag(found)), ...own };
  const links = directoryEntries(directory, reading.read);
  // The first is read before the answer begins, so that a block that is missing has a status.
  const entries = { first: await links.next(), rest: links };
  if (wanted.format === "json") {
    const described = { content_type: "application/json", x_content_type_options: "nosniff" };
    const etag = `"${found.text}.listing.json"`;
    return { headers: { ...headers, ...described, etag }, body: reading.body(listingJson(entries)) };
  }
  const described = { content_type: "text/html", content_security_policy: pagePolicy(listingStyle) };
  const page = listingPage({ place, cid: found.text, changed: dateOf(directory.unixfs.mtime), entries });
  return { headers: { ...headers, ...described }, body: reading.body(page) };
}
