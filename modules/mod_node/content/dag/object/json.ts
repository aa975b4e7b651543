/** Objects as JSON, for `object put`. */
import { parseCid } from "../../../formats/cid/text.ts";
import type { PbLink, PbNode } from "../../../formats/dag_pb/dag_pb.ts";
import { ITEMS_PER_STEP, type Steps } from "../../../util/async/steps.ts";
import { failure } from "../../../util/errors.ts";
import { decodeBase64 } from "../../../util/go/base64.ts";
import type { JsonToken } from "../../../util/go/json.ts";
import { type FieldPath, StructReader } from "../../../util/go/json_struct.ts";

const utf8 = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

/** An object as it was written in JSON or XML, its data and CIDs still as text. */
export interface SerializedObject {
  data: Uint8Array;
  links: { name: string; hash: string; size: number }[];
}

/**
 * `{"Data": "...", "Links": [{"Name", "Hash", "Size"}]}`. @throws NodeError with the reference's
 * text
 */
export function* readObjectJson(bytes: Uint8Array): Steps<SerializedObject> {
  const reader = new StructReader(bytes, "first", true);
  const draft: SerializedObject = { data: new Uint8Array(), links: [] };
  yield* reader.document("Node", "coreapi.Node", {
    Data: (token, place) => {
      draft.data = reader.text(token, place) ?? draft.data;
    },
    Links: (token, place) => {
      draft.links = [];
      return reader.list(token, place, "[]coreapi.Link", (each) => objectLink(reader, each, place, draft.links));
    },
  });
  return draft;
}

function* objectLink(
  reader: StructReader,
  token: JsonToken,
  place: FieldPath,
  links: SerializedObject["links"],
): Steps<void> {
  const link = { name: "", hash: "", size: 0 };
  links.push(link);
  yield* reader.struct(token, place, "coreapi.Link", "Link", {
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

/** @throws NodeError for an unknown encoding, data that does not fit it, and malformed CIDs */
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
