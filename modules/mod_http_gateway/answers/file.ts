/** A file, or where a symlink leads. */
import { dateOf, type UnixfsNode } from "modhost/node";
import type { ResponseFields, ResponseHeaders } from "../../../core/types.ts";
import type { Asked } from "../asked.ts";
import { contentAnswer } from "../content/answer.ts";
import { fileSource } from "../content/source.ts";
import { conditionAnswer } from "../headers/conditions.ts";
import { contentHeaders } from "../headers/content.ts";
import { disposition } from "../headers/disposition.ts";
import { typeByName } from "../media/types.ts";
import type { Found } from "../resolve.ts";

/** The page that stands for a directory. */
export interface IndexPage {
  /** Which the path does not say. */
  readonly name: string;
  /** That the page has changed is said by the directory. */
  readonly directory: UnixfsNode;
}

export async function fileAnswer(
  asked: Asked,
  found: Found,
  file: UnixfsNode,
  index?: IndexPage,
): Promise<ResponseFields> {
  const { query, place, request } = asked;
  const headers = contentHeaders(asked, found, `"${found.text}"`);
  const modified = modifiedAt(index?.directory ?? file);
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
  const type = typeByName(filename ?? index?.name ?? place.segments.at(-1) ?? place.below?.at(-1) ?? "");
  return contentAnswer(asked, { source: fileSource(file, asked.reading), type, headers, modified });
}

/** In milliseconds, of whole seconds as the header has them; undefined where the node does not say it. */
function modifiedAt({ unixfs: { mtime } }: UnixfsNode): number | undefined {
  return mtime && dateOf({ ...mtime, nanoseconds: 0 })?.getTime();
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
