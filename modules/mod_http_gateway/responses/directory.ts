/** Responds with a directory without an index file: a page for people, JSON for programs. */
import { createHash } from "node:crypto";
import { dateOf, directoryEntries, type UnixfsNode } from "modhost/node";
import type { ResponseFields } from "../../../core/types.ts";
import type { GatewayCall } from "../gateway_call.ts";
import { pageCacheControl } from "../headers/cache.ts";
import { contentHeaders } from "../headers/content.ts";
import { listingJson, listingPage, listingStyle, PAGE_VERSION } from "../page/listing.ts";
import { pagePolicy } from "../page/policy.ts";
import type { Found } from "../resolve.ts";

const version = createHash("sha256").update(`${PAGE_VERSION}${listingStyle}`).digest("hex").slice(0, 12);

/** The tag includes the version of the page, so it changes with the page. */
export const directoryTag = ({ text }: Pick<Found, "text">): string => `"DirIndex-${version}_CID-${text}"`;

/** Sends entries as they are read, so that only a few of a million entries are in memory. */
export async function listingResponse(call: GatewayCall, found: Found, directory: UnixfsNode): Promise<ResponseFields> {
  const { target, reading, wanted } = call;
  const own = { cache_control: pageCacheControl(found), last_modified: undefined };
  const headers = { ...contentHeaders(call, found, directoryTag(found)), ...own };
  const links = directoryEntries(directory, reading.read);
  // The first entry is read before the response begins, so that a missing block still gets a
  // status.
  const entries = { first: await links.next(), rest: links };
  if (wanted.format === "json") {
    const described = { content_type: "application/json", x_content_type_options: "nosniff" };
    const etag = `"${found.text}.listing.json"`;
    return { headers: { ...headers, ...described, etag }, body: reading.body(listingJson(entries)) };
  }
  const described = { content_type: "text/html", content_security_policy: pagePolicy(listingStyle) };
  const page = listingPage({ target, cid: found.text, changed: dateOf(directory.unixfs.mtime), entries });
  return { headers: { ...headers, ...described }, body: reading.body(page) };
}
