/** Objects as JSON, for `object put`. */
import { parseCid } from "../../../formats/cid/text.ts";
import type { PbLink, PbNode } from "../../../formats/dag_pb/dag_pb.ts";
import { ITEMS_PER_STEP, type Steps } from "../../../util/async/steps.ts";
import { failure } from "../../../util/errors.ts";
import { decodeBase64 } from "../../../util/go/base64.ts";
import type { JsonToken } from "../../../util/go/json.ts";
import { type FieldPath, StructReader } from "../../../util/go/json_struct.ts";

const utf8 = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

/** An object as JSON or XML describes it. Its data and CIDs are still text. */
export interface SerializedObject {
  data: Uint8Array;
  links: { name: string; hash: string; size: number }[];
}

/**
 * Reads `{"Data": "...", "Links": [{"Name", "Hash", "Size"}]}`. @throws NodeError with the
 * reference's text
 */
export function* readObjectJson(bytes: Uint8Array): Steps<SerializedObject> {
  const reader = new StructReader(bytes, "first", true);
  const draft: SerializedObject = { data: new Uint8Array(), links: [] };
  yield* reader.document("Node", "coreapi.Node", {
    Data: (token, path) => {
      draft.data = reader.text(token, path) ?? draft.data;
    },
    Links: (token, path) => {
      draft.links = [];
      return reader.list(token, path, "[]coreapi.Link", (each) => objectLink(reader, each, path, draft.links));
    },
  });
  return draft;
}

function* objectLink(
  reader: StructReader,
  token: JsonToken,
  path: FieldPath,
  links: SerializedObject["links"],
): Steps<void> {
  const link = { name: "", hash: "", size: 0 };
  links.push(link);
  yield* reader.struct(token, path, "coreapi.Link", "Link", {
    Name: (each, at) => {
      link.name = utf8(reader.text(each, at) ?? Buffer.from(link.name));
    },
    Hash: (each, at) => {
      link.hash = utf8(reader.text(each, at) ?? Buffer.from(link.hash));
    },
    Size: (each, at) => {
      link.size = reader.uint64(each, at) ?? link.size;
    },
  });
}

/** @throws NodeError for an unknown encoding, data that does not match it, and malformed CIDs */
export function* objectOf({ data, links }: SerializedObject, encoding: string): Steps<PbNode> {
  if (encoding !== "text" && encoding !== "base64")
    throw failure("OPTION_INVALID", { reason: "unknown data field encoding" });
  const bytes = encoding === "text" ? data : decodeBase64(utf8(data));
  const parsed: PbLink[] = [];
  for (const { name, hash, size } of links) {
    if (parsed.length % ITEMS_PER_STEP === 0) yield;
    parsed.push({ name, size, cid: parseCid(hash) });
  }
  return { data: bytes, links: parsed };
}
