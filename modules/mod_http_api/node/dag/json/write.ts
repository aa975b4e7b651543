/** Nodes as JSON: the reference's older form, and dag-json. */
import { NodeError } from "../../errors.ts";
import { quotedJson } from "../../go/text.ts";
import { bytewise, type Scalar, type Value, visitValue } from "../cbor/value.ts";

/** Values inside of values, at most: JSON readers end there. */
const deepest = 10_000;

interface Form {
  float(value: number): string;
  bytes(value: Uint8Array): string;
}

/** The older form: floats as JavaScript writes them, bytes as base64 text. */
const older: Form = {
  float: (value) => (Object.is(value, -0) ? "-0" : String(value)),
  bytes: (value) => `"${Buffer.from(value).toString("base64")}"`,
};

const dagJson: Form = {
  float: (value) => (Object.is(value, -0) ? "-0.0" : Number.isInteger(value) ? wholeFloat(value) : String(value)),
  bytes: (value) => `{"/":{"bytes":"${Buffer.from(value).toString("base64").replace(/=+$/, "")}"}}`,
};

const wholeFloat = (value: number): string => (/e/.test(String(value)) ? String(value) : `${value}.0`);

/** Keys in bytewise order. @throws NodeError with the reference's text for what JSON has no form for */
export const writeJson = (value: Value): string => write(value, older);
/** Bytes of a dag-json block. @throws NodeError like `writeJson` */
export const writeDagJson = (value: Value): Uint8Array => Buffer.from(write(value, dagJson));

function write(value: Value, form: Form): string {
  const parts: string[] = [];
  let depth = 0;
  visitValue(value, bytewise, {
    enter(container) {
      depth += 1;
      const open = container instanceof Map ? "{" : "[";
      if (depth > deepest) throw unwritten(`invalid character '${open}' exceeded max depth`);
      parts.push(open);
    },
    leave(container) {
      depth -= 1;
      parts.push(container instanceof Map ? "}" : "]");
    },
    item: (at) => {
      if (at > 0) parts.push(",");
    },
    key: (key) => parts.push(text(key), ":"),
    scalar: (scalar) => parts.push(scalarText(scalar, form)),
  });
  return parts.join("");
}

const text = (latin1: string): string => quotedJson(Buffer.from(latin1, "latin1"));

function scalarText(scalar: Scalar, form: Form): string {
  if (typeof scalar === "string") return text(scalar);
  if (scalar === null || typeof scalar === "boolean" || typeof scalar === "bigint") return String(scalar);
  if (typeof scalar === "number") {
    if (!Number.isFinite(scalar)) throw unwritten(`json: unsupported value: ${floatName(scalar)}`);
    return form.float(scalar);
  }
  if (scalar instanceof Uint8Array) return form.bytes(scalar);
  return `{"/":"${scalar}"}`;
}

const floatName = (value: number): string => (Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");

const unwritten = (reason: string) =>
  new NodeError(`json: error calling MarshalJSON for type *cbornode.Node: ${reason}`);
