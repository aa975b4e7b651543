/** dag-pb nodes in the JSON of `dag put`. */
import type { CID } from "multiformats/cid";
import type { Steps } from "../../util/async/steps.ts";
import { failure } from "../../util/errors.ts";
import { decodeBase64 } from "../../util/go/base64.ts";
import type { JsonToken } from "../../util/go/json.ts";
import { type FieldPath, StructReader } from "../../util/go/json_struct.ts";
import { parseCid } from "../cid/text.ts";
import type { PbLink, PbNode } from "../dag_pb/dag_pb.ts";

const utf8 = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

/** A link whose parts come one by one. */
interface PartialLink {
  name: string;
  size: number;
  cid?: CID | undefined;
}

const nodeType = 'struct { Data []uint8 "json:\\"data\\""; Links []*format.Link "json:\\"links\\"" }';
const cidType = 'struct { CidTarget string "json:\\"/\\"" }';

/**
 * `{"data": "<base64>", "links": [{"Name", "Size", "Cid": {"/": "<cid>"}}]}`.
 *
 * @throws NodeError with the reference's text
 */
export function* readPbJson(bytes: Uint8Array): Steps<PbNode> {
  const reader = new StructReader(bytes, "document");
  const drafts: PartialLink[] = [];
  let data: Uint8Array | undefined;
  yield* reader.document("", nodeType, {
    *data(token, place) {
      data = yield* bytesOf(reader, token, place);
    },
    links(token, place) {
      drafts.length = 0;
      return reader.list(token, place, "[]*format.Link", (each) => pbLink(reader, each, place, drafts));
    },
  });
  return { data, links: drafts.map(requireCid) };
}

function* pbLink(reader: StructReader, token: JsonToken, place: FieldPath, drafts: PartialLink[]): Steps<void> {
  const draft: PartialLink = { name: "", size: 0 };
  drafts.push(draft);
  yield* reader.struct(token, place, "format.Link", "Link", {
    Name: (each, at) => {
      draft.name = utf8(reader.text(each, at) ?? Buffer.from(draft.name));
    },
    Size: (each, at) => {
      draft.size = reader.uint64(each, at) ?? draft.size;
    },
    *Cid(each, at) {
      draft.cid = yield* cidIn(reader, each, at);
    },
  });
}

function* cidIn(reader: StructReader, token: JsonToken, place: FieldPath): Steps<CID | undefined> {
  if (token === "null") return undefined;
  let target: string | undefined = token === "{" ? "" : undefined;
  const field = (each: JsonToken) => {
    const text = reader.text(each, place);
    if (text !== undefined) target = utf8(text);
    else if (each !== "null") target = undefined;
  };
  yield* reader.struct(token, place, cidType, place.struct, { "/": field });
  // A fault was recorded already.
  if (target === undefined || reader.stopped) return undefined;
  try {
    if (target === "") throw failure("DAG_PB_INVALID", { reason: "cid was incorrectly formatted" });
    return parseCid(target);
  } catch (error) {
    reader.stop((error as Error).message);
    return undefined;
  }
}

/** Base64 or a list of numbers: Go accepts both for bytes. */
function* bytesOf(reader: StructReader, token: JsonToken, place: FieldPath): Steps<Uint8Array | undefined> {
  if (token === "[") {
    const numbers: number[] = [];
    yield* reader.list(token, place, "[]uint8", (each) => {
      numbers.push(reader.uint64(each, place) ?? 0);
    });
    if (numbers.some((number) => number > 255)) reader.fail(`${place.path} holds a number that is no byte`);
    return Uint8Array.from(numbers);
  }
  const text = reader.text(token, place, "[]uint8");
  if (text === undefined) return undefined;
  try {
    return decodeBase64(utf8(text));
  } catch (error) {
    reader.fail((error as Error).message);
    return undefined;
  }
}

/** The reference writes a link without CID, and cannot read the node afterwards. */
function requireCid({ name, size, cid }: PartialLink, at: number): PbLink {
  if (cid === undefined) throw failure("DAG_PB_LINK_INVALID", { at, reason: "cid too short" });
  return { name, size, cid };
}
