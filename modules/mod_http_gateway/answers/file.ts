/** A file, or where a symlink leads. */
import type { UnixfsNode } from "modhost/node";
import type { ResponseFields, ResponseHeaders } from "../../../core/types.ts";
import type { Asked } from "../asked.ts";
import { contentAnswer } from "../content/answer.ts";
import { fileSource } from "../content/source.ts";
import { conditionAnswer } from "../headers/conditions.ts";
import { contentHeaders } from "../headers/content.ts";
import { disposition } from "../headers/disposition.ts";
import { typeByName } from "../media/types.ts";
import type { Found } from "../resolve.ts";

/** `name` is that of the file where the path does not say it: of the index of a directory. */
export async function fileAnswer(asked: Asked, found: Found, file: UnixfsNode, name?: string): Promise<ResponseFields> {
  const { query, place, request } = asked;
  const headers = contentHeaders(asked, found, `"${found.text}"`);
  const modified = modifiedOf(file);
  if (modified !== undefined) {
    headers.last_modified = new Date(modified).toUTCString();
    const known = conditionAnswer(request, [`"${found.text}"`], headers, modified);
    if (known !== undefined) return known;
  }
  const filename = query.get("filename") || undefined;
  addDisposition(headers, asked, filename);
  if (file.unixfs.type === "Symlink") {
    return {
      headers: { ...headers, content_type: "inode/symlink", accept_ranges: "bytes" },
      body: file.unixfs.data ?? "",
    };
  }
  const type = typeByName(filename ?? name ?? place.segments.at(-1) ?? place.below?.at(-1) ?? "");
  return contentAnswer(asked, { source: fileSource(file, asked.reading), type, headers, modified });
}

/** The latest second that a Date has. */
const MAX_SECONDS = 8_640_000_000_000;

/** In milliseconds; undefined where the file does not say it. */
function modifiedOf({ unixfs: { mtime } }: UnixfsNode): number | undefined {
  return mtime === undefined || Math.abs(mtime) > MAX_SECONDS ? undefined : mtime * 1000;
}

/** What is opened is shown; what is downloaded is saved, under the name in the query or in the path. */
function addDisposition(headers: ResponseHeaders, { query, place }: Asked, filename: string | undefined): void {
  const isSaved = query.get("download") === "true";
  if (filename !== undefined) headers.content_disposition = disposition(isSaved ? "attachment" : "inline", filename);
  else if (isSaved) {
    const last = place.segments.at(-1);
    headers.content_disposition = last === undefined ? "attachment" : disposition("attachment", last);
  }
}
