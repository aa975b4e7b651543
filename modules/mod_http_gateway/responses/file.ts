/** Responds with a file, or with the target of a symlink. */
import { dateOf, type UnixfsNode } from "modhost/node";
import type { ResponseFields, ResponseHeaders } from "../../../core/types.ts";
import { contentResponse } from "../content/response.ts";
import { fileSource } from "../content/source.ts";
import type { GatewayCall } from "../gateway_call.ts";
import { conditionalResponse } from "../headers/conditions.ts";
import { contentHeaders } from "../headers/content.ts";
import { disposition } from "../headers/disposition.ts";
import { typeByName } from "../media/types.ts";
import type { Found } from "../resolve.ts";

/** The index page of a directory. */
export interface IndexPage {
  /** Name of the index file, which is not in the path. */
  readonly name: string;
  /** The directory, whose modification time tells when the page changed. */
  readonly directory: UnixfsNode;
}

export async function fileResponse(
  call: GatewayCall,
  found: Found,
  file: UnixfsNode,
  index?: IndexPage,
): Promise<ResponseFields> {
  const { query, target, request } = call;
  const headers = contentHeaders(call, found, `"${found.text}"`);
  const modified = modifiedAt(index?.directory ?? file);
  if (modified !== undefined) {
    headers.last_modified = new Date(modified).toUTCString();
    const known = conditionalResponse(request, [`"${found.text}"`], headers, modified);
    if (known !== undefined) return known;
  }
  const filename = query.get("filename") || undefined;
  addDisposition(headers, call, filename);
  if (file.unixfs.type === "Symlink") {
    return {
      headers: { ...headers, content_type: "inode/symlink", accept_ranges: "bytes" },
      body: file.unixfs.data ?? "",
    };
  }
  const type = typeByName(filename ?? index?.name ?? target.segments.at(-1) ?? target.below?.at(-1) ?? "");
  return contentResponse(call, { source: fileSource(file, call.reading), type, headers, modified });
}

/**
 * Returns milliseconds in whole seconds, as in the header; undefined if the node has no
 * modification time.
 */
function modifiedAt({ unixfs: { mtime } }: UnixfsNode): number | undefined {
  return mtime && dateOf({ ...mtime, nanoseconds: 0 })?.getTime();
}

/**
 * Content that is opened is shown inline. Content that is downloaded is saved under the name in the
 * query or in the path.
 */
function addDisposition(headers: ResponseHeaders, { query, target }: GatewayCall, filename: string | undefined): void {
  const isSaved = query.get("download") === "true";
  if (filename !== undefined) headers.content_disposition = disposition(isSaved ? "attachment" : "inline", filename);
  else if (isSaved) {
    const last = target.segments.at(-1);
    headers.content_disposition = last === undefined ? "attachment" : disposition("attachment", last);
  }
}
