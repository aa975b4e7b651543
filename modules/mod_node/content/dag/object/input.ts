/** Reads nodes from the text forms that `object put` accepts. */
import { encodePb, parsePb } from "../../../formats/dag_pb/dag_pb.ts";
import { readUpTo } from "../../../util/async/read_all.ts";
import { inSlices, type Steps } from "../../../util/async/steps.ts";
import { failure } from "../../../util/errors.ts";
import { objectOf, readObjectJson, type SerializedObject } from "./json.ts";
import { readObjectXml } from "./xml.ts";

/** Maximum number of bytes of an input that are read. */
const MAX_INPUT = 2 * 1024 * 1024 + 10;

/**
 * Returns the bytes of the node that the input describes. `form` is `json`, `xml` or `protobuf`;
 * `encoding` of the data is `text` or `base64`.
 *
 * @throws NodeError with the reference's text
 */
export async function encodedObject(
  source: AsyncIterable<Uint8Array>,
  form: string,
  encoding: string,
): Promise<Uint8Array> {
  const input = await readUpTo(source, MAX_INPUT);
  switch (form) {
    case "json":
      return inSlices(recoded(readObjectJson(input), encoding));
    case "xml":
      return inSlices(recoded(readObjectXml(input), encoding));
    case "protobuf":
      parsePb(input);
      return input;
    default:
      throw failure("OPTION_INVALID", { reason: "unknown object encoding" });
  }
}

function* recoded(read: Steps<SerializedObject>, encoding: string): Steps<Uint8Array> {
  const node = yield* objectOf(yield* read, encoding);
  yield;
  return encodePb(node);
}
