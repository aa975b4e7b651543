/** The header of an archive ("CARv1 specification"): its roots and its version. */
import type { CID } from "multiformats/cid";
import { CborReader, type CborToken } from "../../formats/dag_cbor/reader.ts";
import { encodeCbor, type Value } from "../../formats/dag_cbor/value.ts";
import { linkCid, tokenText } from "../../formats/dag_cbor/visit.ts";
import { NodeError } from "../../util/errors.ts";
import { quote } from "../../util/go/text.ts";

export const writeHeader = (roots: readonly CID[]): Uint8Array =>
  encodeCbor(
    new Map<string, Value>([
      ["roots", [...roots]],
      ["version", 1n],
    ]),
  );

/** @throws NodeError with the reference's text; also for versions other than 1, and when there is no root */
export function readHeader(bytes: Uint8Array): readonly CID[] {
  const header = parse(bytes);
  if (header.version !== 1) throw new NodeError(`invalid car version: ${header.version}`);
  if (header.roots.length === 0) throw new NodeError("empty car, no roots");
  return header.roots;
}

interface Header {
  roots: CID[];
  version: number | bigint;
}

function parse(bytes: Uint8Array): Header {
  try {
    return parseMap(new CborReader(bytes, "EOF"));
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    throw new NodeError(`invalid header: ${error.message}`, { cause: error });
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
  return new NodeError(`malformed stream: invalid appearance of ${name} token; expected ${expected}`);
}

function parseMap(reader: CborReader): Header {
  const header: Header = { roots: [], version: 0 };
  const first = reader.next();
  if (first === "null") return header;
  if (first !== "map") throw misplaced(first, reader, "start of map");
  for (let token = reader.next(); token !== "close"; token = reader.next()) {
    if (token !== "text") throw misplaced(token, reader, "map key");
    const key = Buffer.from(reader.bytes).toString();
    if (key === "roots") header.roots = parseRoots(reader);
    else if (key === "version") header.version = parseVersion(reader);
    else {
      const what = `stream contains key ${quote(key)}, but there's no such field in structs of type car.CarHeader`;
      throw new NodeError(`unmarshal error: ${what}`);
    }
  }
  return header;
}

function parseRoots(reader: CborReader): CID[] {
  const first = reader.next();
  if (first === "null") return [];
  if (first !== "list") throw misplaced(first, reader, "start of array");
  const roots: CID[] = [];
  for (let token = reader.next(); token !== "close"; token = reader.next()) {
    if (token !== "bytes" && token !== "null") {
      throw new NodeError(`unmarshal error: cannot assign ${tokenText(token, reader)} to slice field`);
    }
    roots.push(linkCid(token === "null" ? new Uint8Array() : reader.bytes));
  }
  return roots;
}

function parseVersion(reader: CborReader): number | bigint {
  const token = reader.next();
  if (token !== "int" || reader.int < 0) {
    throw new NodeError(`unmarshal error: cannot assign ${tokenText(token, reader)} to uint64 field`);
  }
  return reader.int;
}
