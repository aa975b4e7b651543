/** Reads dag-pb nodes from the JSON form that `dag put` accepts. */
import type { CID } from "multiformats/cid";
import type { Steps } from "../../util/async/steps.ts";
import { failure } from "../../util/errors.ts";
import { decodeBase64 } from "../../util/go/base64.ts";
import type { JsonToken } from "../../util/go/json.ts";
import { type FieldPath, StructReader } from "../../util/go/json_struct.ts";
import { parseCid } from "../cid/text.ts";
import type { PbLink, PbNode } from "../dag_pb/dag_pb.ts";

const utf8 = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

/** A link whose fields are read one after another. */
interface PartialLink {
  name: string;
  size: number;
  cid?: CID | undefined;
}

const nodeType = 'struct { Data []uint8 "json:\\"data\\""; Links []*format.Link "json:\\"links\\"" }';
const cidType = 'struct { CidTarget string "json:\\"/\\"" }';

/**
 * Reads `{"data": "<base64>", "links": [{"Name", "Size", "Cid": {"/": "<cid>"}}]}`.
 *
 * @throws NodeError with the error text of go-ipfs
 */
export function* readPbJson(bytes: Uint8Array): Steps<PbNode> {
  const reader = new StructReader(bytes, "document");
  const drafts: PartialLink[] = [];
  let data: Uint8Array | undefined;
  yield* reader.document("", nodeType, {
    *data(token, field) {
      data = yield* bytesOf(reader, token, field);
    },
    links(token, field) {
      drafts.length = 0;
      return reader.list(token, field, "[]*format.Link", (each) => pbLink(reader, each, field, drafts));
    },
  });
  return { data, links: drafts.map(requireCid) };
}

function* pbLink(reader: StructReader, token: JsonToken, field: FieldPath, drafts: PartialLink[]): Steps<void> {
  const draft: PartialLink = { name: "", size: 0 };
  drafts.push(draft);
  yield* reader.struct(token, field, "format.Link", "Link", {
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

function* cidIn(reader: StructReader, token: JsonToken, field: FieldPath): Steps<CID | undefined> {
  if (token === "null") return undefined;
  let target: string | undefined = token === "{" ? "" : undefined;
  const readTarget = (each: JsonToken) => {
    const text = reader.text(each, field);
    if (text !== undefined) target = utf8(text);
    else if (each !== "null") target = undefined;
  };
  yield* reader.struct(token, field, cidType, field.struct, { "/": readTarget });
  // The reader has already recorded the error.
  if (target === undefined || reader.stopped) return undefined;
  try {
    if (target === "") throw failure("DAG_PB_INVALID", { reason: "cid was incorrectly formatted" });
    return parseCid(target);
  } catch (error) {
    reader.stop((error as Error).message);
    return undefined;
  }
}

/** Reads base64 or a list of numbers, because Go accepts both for bytes. */
function* bytesOf(reader: StructReader, token: JsonToken, field: FieldPath): Steps<Uint8Array | undefined> {
  if (token === "[") {
    const numbers: number[] = [];
    yield* reader.list(token, field, "[]uint8", (each) => {
      numbers.push(reader.uint64(each, field) ?? 0);
    });
    if (numbers.some((number) => number > 255)) reader.fail(`${field.path} holds a number that is no byte`);
    return Uint8Array.from(numbers);
  }
  const text = reader.text(token, field, "[]uint8");
  if (text === undefined) return undefined;
  try {
    return decodeBase64(utf8(text));
  } catch (error) {
    reader.fail((error as Error).message);
    return undefined;
  }
}

/** go-ipfs stores a link without a CID, and then cannot read the node. Here it is an error. */
function requireCid({ name, size, cid }: PartialLink, at: number): PbLink {
  if (cid === undefined) throw failure("DAG_PB_LINK_INVALID", { at, reason: "cid too short" });
  return { name, size, cid };
}
