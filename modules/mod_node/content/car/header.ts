/** The header of an archive ("CARv1 specification"): its roots and its version. */
import type { CID } from "multiformats/cid";
import { CborReader, type CborToken } from "../../formats/dag_cbor/reader.ts";
import type { Value } from "../../formats/dag_cbor/value.ts";
import { linkCid, tokenText } from "../../formats/dag_cbor/visit.ts";
import { encodeCbor } from "../../formats/dag_cbor/write.ts";
import { ITEMS_PER_STEP, inSlices, type Steps } from "../../util/async/steps.ts";
import { failure, NodeError } from "../../util/errors.ts";
import { quote } from "../../util/go/text.ts";

export const writeHeader = (roots: readonly CID[]): Uint8Array =>
  encodeCbor(
    new Map<string, Value>([
      ["roots", [...roots]],
      ["version", 1n],
    ]),
  );

export interface CarHeader {
  roots: CID[];
  version: number | bigint;
}

/**
 * Parses the header in slices of time. The CIDs of the roots are views of the bytes. @throws
 * NodeError with Kubo's text
 */
export const parseHeader = (bytes: Uint8Array): Promise<CarHeader> => inSlices(headerSteps(bytes));

function* headerSteps(bytes: Uint8Array): Steps<CarHeader> {
  try {
    return yield* parseMap(new CborReader(bytes, { end: "EOF" }));
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    throw failure("CAR_INVALID", { reason: `invalid header: ${error.message}` }, error);
  }
}

/** Names of tokens in error texts. */
const names: Readonly<Record<CborToken, string>> = {
  map: "map open",
  list: "array open",
  close: "map close",
  null: "null",
  true: "bool",
  false: "bool",
  int: "uint",
  float: "float",
  text: "string",
  bytes: "bytes",
};

function misplaced(token: CborToken, { int }: CborReader, expected: string): NodeError {
  const name = token === "int" && int < 0 ? "int" : names[token];
  return failure("CAR_INVALID", {
    reason: `malformed stream: invalid appearance of ${name} token; expected ${expected}`,
  });
}

function* parseMap(reader: CborReader): Steps<CarHeader> {
  const header: CarHeader = { roots: [], version: 0 };
  const first = reader.next();
  if (first === "null") return header;
  if (first !== "map") throw misplaced(first, reader, "start of map");
  for (let token = reader.next(); token !== "close"; token = reader.next()) {
    if (token !== "text") throw misplaced(token, reader, "map key");
    const key = Buffer.from(reader.bytes).toString();
    if (key === "roots") header.roots = yield* parseRoots(reader);
    else if (key === "version") header.version = parseVersion(reader);
    else {
      const what = `stream contains key ${quote(key)}, but there's no such field in structs of type car.CarHeader`;
      throw failure("CAR_INVALID", { reason: `unmarshal error: ${what}` });
    }
  }
  return header;
}

function* parseRoots(reader: CborReader): Steps<CID[]> {
  const first = reader.next();
  if (first === "null") return [];
  if (first !== "list") throw misplaced(first, reader, "start of array");
  const roots: CID[] = [];
  for (let token = reader.next(); token !== "close"; token = reader.next()) {
    if (token !== "bytes" && token !== "null") {
      throw failure("CAR_INVALID", {
        reason: `unmarshal error: cannot assign ${tokenText(token, reader)} to slice field`,
      });
    }
    roots.push(linkCid(token === "null" ? new Uint8Array() : reader.bytes));
    if (roots.length % ITEMS_PER_STEP === 0) yield;
  }
  return roots;
}

function parseVersion(reader: CborReader): number | bigint {
  const token = reader.next();
  if (token !== "int" || reader.int < 0) {
    throw failure("CAR_INVALID", {
      reason: `unmarshal error: cannot assign ${tokenText(token, reader)} to uint64 field`,
    });
  }
  return reader.int;
}
