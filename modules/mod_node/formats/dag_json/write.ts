/** Writes nodes as JSON: in the older form of go-ipfs, and as dag-json. */
import { atOnce, type Steps, TextCollector } from "../../util/async/steps.ts";
import { failure } from "../../util/errors.ts";
import { GoText, quotedJson } from "../../util/go/text.ts";
import { bytewise, type Scalar, type Value, visitValueSteps } from "../dag_cbor/value.ts";

/** Maximum nesting, which is the limit of JSON readers. */
const MAX_DEPTH = 10_000;

interface Form {
  /** Writes a text that is given as one character per byte. */
  text(latin1: string): string;
  float(value: number): string;
  bytes(value: Uint8Array): string;
}

/**
 * The older form: texts as Go writes them, floats as JavaScript writes them, bytes as base64 text.
 */
const legacy: Form = {
  text: (latin1) => quotedJson(Buffer.from(latin1, "latin1")),
  float: (value) => (Object.is(value, -0) ? "-0" : String(value)),
  bytes: (value) => `"${Buffer.from(value).toString("base64")}"`,
};

/**
 * The CID depends on every byte, so only characters that JSON requires to be escaped are escaped.
 */
const dagJson: Form = {
  text: (latin1) => JSON.stringify(String(new GoText(Buffer.from(latin1, "latin1")))),
  float: (value) => (Object.is(value, -0) ? "-0.0" : Number.isInteger(value) ? wholeFloat(value) : String(value)),
  bytes: (value) => `{"/":{"bytes":"${Buffer.from(value).toString("base64").replace(/=+$/, "")}"}}`,
};

const wholeFloat = (value: number): string => (/e/.test(String(value)) ? String(value) : `${value}.0`);

/**
 * Writes keys sorted by their bytes.
 *
 * @throws NodeError with the error text of go-ipfs for values that JSON cannot express
 */
export const writeJson = (value: Value): string => atOnce(writeJsonSteps(value));
/** Same as `writeJson`, in steps. */
export const writeJsonSteps = (value: Value): Steps<string> => write(value, legacy);
/** Returns the bytes of a dag-json block. @throws NodeError as `writeJson` does */
export const writeDagJson = (value: Value): Uint8Array => atOnce(writeDagJsonSteps(value));

/** Same as `writeDagJson`, in steps. */
export function* writeDagJsonSteps(value: Value): Steps<Uint8Array> {
  return Buffer.from(yield* write(value, dagJson));
}

/**
 * Writes plain JSON as Kubo does: indented with a tab per level, with a line break after a list or
 * a map.
 *
 * @throws NodeError for bytes
 */
export function* writePlainJsonSteps(value: Value): Steps<Uint8Array> {
  const plain = {
    ...dagJson,
    bytes: () => {
      throw failure("VALUE_NOT_ENCODABLE", { reason: "cannot encode bytes in this codec" });
    },
  };
  return Buffer.from(yield* writeIndented(value, plain));
}

function* writeIndented(value: Value, form: Form): Steps<string> {
  const parts = new TextCollector();
  const counts: number[] = [];
  const line = () => parts.push("\n", "\t".repeat(counts.length));
  yield* visitValueSteps(value, () => 0, {
    enter(container) {
      parts.push(container instanceof Map ? "{" : "[");
      counts.push(0);
    },
    leave(container) {
      if (counts.pop() !== 0) line();
      parts.push(container instanceof Map ? "}" : "]");
    },
    item(at) {
      counts[counts.length - 1] = at + 1;
      if (at > 0) parts.push(",");
      line();
    },
    key: (key) => parts.push(form.text(key), ": "),
    scalar: (scalar) => parts.push(scalarText(scalar, form)),
  });
  const isContainer = Array.isArray(value) || value instanceof Map;
  return isContainer ? `${parts.text}\n` : parts.text;
}

function* write(value: Value, form: Form): Steps<string> {
  const parts = new TextCollector();
  let depth = 0;
  yield* visitValueSteps(value, bytewise, {
    enter(container) {
      depth += 1;
      const open = container instanceof Map ? "{" : "[";
      if (depth > MAX_DEPTH) throw cannotMarshal(`invalid character '${open}' exceeded max depth`);
      parts.push(open);
    },
    leave(container) {
      depth -= 1;
      parts.push(container instanceof Map ? "}" : "]");
    },
    item: (at) => {
      if (at > 0) parts.push(",");
    },
    key: (key) => parts.push(form.text(key), ":"),
    scalar: (scalar) => parts.push(scalarText(scalar, form)),
  });
  return parts.text;
}

function scalarText(scalar: Scalar, form: Form): string {
  if (typeof scalar === "string") return form.text(scalar);
  if (scalar === null || typeof scalar === "boolean" || typeof scalar === "bigint") return String(scalar);
  if (typeof scalar === "number") {
    if (!Number.isFinite(scalar)) throw cannotMarshal(`json: unsupported value: ${floatName(scalar)}`);
    return form.float(scalar);
  }
  if (scalar instanceof Uint8Array) return form.bytes(scalar);
  return `{"/":"${scalar}"}`;
}

const floatName = (value: number): string => (Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");

const cannotMarshal = (reason: string) =>
  failure("VALUE_NOT_ENCODABLE", { reason: `json: error calling MarshalJSON for type *cbornode.Node: ${reason}` });
