/** Responds with UnixFS content for browsers: files, and directories as websites or as pages. */
import { directoryEntry, isDirectory, openFile, type UnixfsNode } from "modhost/node";
import type { ResponseFields } from "../../../core/types.ts";
import { escapedPath, visiblePath } from "../content_target.ts";
import { Refusal } from "../errors/refusal.ts";
import type { GatewayCall } from "../gateway_call.ts";
import { conditionalResponse } from "../headers/conditions.ts";
import { contentHeaders, pathHeaders } from "../headers/content.ts";
import { suffixOf } from "../request/query.ts";
import { Redirect } from "../request/redirect.ts";
import type { Found } from "../resolve.ts";
import { directoryTag, listingResponse } from "./directory.ts";
import { documentPageTag } from "./document_page.ts";
import { fileResponse } from "./file.ts";

const INDEX = "index.html";

/** @throws NodeError, {Redirect} for a directory without a final slash, {Refusal} */
export async function unixfsResponse(call: GatewayCall, found: Found): Promise<ResponseFields> {
  const { request, reading } = call;
  const tags = () => [`"${found.text}"`, directoryTag(found), documentPageTag(found)];
  if (request.header("if-none-match") !== undefined || request.header("if-match") !== undefined) {
    const known = conditionalResponse(request, tags(), contentHeaders(call, found, `"${found.text}"`));
    if (known !== undefined) return known;
  }
  const node = await openFile(found.cid, reading.readPath);
  return isDirectory(node) ? directoryResponse(call, found, node) : fileResponse(call, found, node);
}

async function directoryResponse(call: GatewayCall, found: Found, directory: UnixfsNode): Promise<ResponseFields> {
  const { target, path, reading, request, wanted } = call;
  if (!target.slash) {
    // Relative links in a page only work with the final slash.
    const location = `${escapedPath(visiblePath(target))}/${suffixOf(request)}`;
    throw new Redirect(301, location, pathHeaders(path, found));
  }
  const index = wanted.format === "json" ? undefined : await directoryEntry(directory, INDEX, reading.readPath);
  if (index === undefined) return listingResponse(call, found, directory);
  requireServed(call, found, INDEX);
  const file = await openFile(index.cid, reading.read);
  if (isDirectory(file)) throw new Refusal(422, `${INDEX} of ${found.text} is a directory instead of a page`);
  return fileResponse(call, found, file, { name: INDEX, directory });
}

/**
 * Checks an index file, whose name is not in the path, against the denylists. @throws NodeError for
 * a denied path
 */
function requireServed({ node, target }: GatewayCall, { from }: Found, name: string): void {
  const { denylists } = node.lowLevel;
  if (target.namespace === "ipns") denylists.requirePath("ipns", target.root, [...target.segments, name]);
  denylists.requirePath("ipfs", from.root, [...from.names, name]);
}
