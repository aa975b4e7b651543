/** What a browser gets of UnixFS: files, directories as websites or as pages. */
import { directoryEntry, isDirectory, openFile, type UnixfsNode } from "modhost/node";
import type { ResponseFields } from "../../../core/types.ts";
import type { Asked } from "../asked.ts";
import { Refusal } from "../errors/refusal.ts";
import { conditionAnswer } from "../headers/conditions.ts";
import { contentHeaders } from "../headers/content.ts";
import { escapedPath, visiblePath } from "../place.ts";
import { suffixOf } from "../request/query.ts";
import { Redirect } from "../request/redirect.ts";
import type { Found } from "../resolve.ts";
import { directoryTag, listingAnswer } from "./directory.ts";
import { documentPageTag } from "./document_page.ts";
import { fileAnswer } from "./file.ts";

const INDEX = "index.html";

/** @throws NodeError, {Redirect} of a directory without a slash, {Refusal} */
export async function unixfsAnswer(asked: Asked, found: Found): Promise<ResponseFields> {
  const { request, reading } = asked;
  const tags = () => [`"${found.text}"`, directoryTag(found), documentPageTag(found)];
  if (request.headers.if_none_match !== undefined || request.headers.if_match !== undefined) {
    const known = conditionAnswer(request, tags(), contentHeaders(asked, found, `"${found.text}"`));
    if (known !== undefined) return known;
  }
  const node = await openFile(found.cid, reading.readPath);
  return isDirectory(node) ? directoryAnswer(asked, found, node) : fileAnswer(asked, found, node);
}

async function directoryAnswer(asked: Asked, found: Found, directory: UnixfsNode): Promise<ResponseFields> {
  const { place, reading, request, wanted } = asked;
  // Relative links of a page count from the slash.
  if (!place.slash) throw new Redirect(301, `${escapedPath(visiblePath(place))}/${suffixOf(request)}`);
  const index = wanted.format === "json" ? undefined : await directoryEntry(directory, INDEX, reading.readPath);
  if (index === undefined) return listingAnswer(asked, found, directory);
  requireServed(asked, found, INDEX);
  const file = await openFile(index.cid, reading.read);
  if (isDirectory(file)) throw new Refusal(422, `${INDEX} of ${found.text} is a directory, and no page`);
  return fileAnswer(asked, found, file, { name: INDEX, directory });
}

/** A name that the path does not have, and its answer comes from. @throws NodeError for one that is denied */
function requireServed({ node, place }: Asked, { from }: Found, name: string): void {
  const { denylists } = node.lowLevel;
  if (place.namespace === "ipns") denylists.requirePath("ipns", place.root, [...place.segments, name]);
  denylists.requirePath("ipfs", from.root, [...from.names, name]);
}
