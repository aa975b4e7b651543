/**
 * Values of the data model in the form that the JavaScript client libraries use: integers are
 * numbers while these are exact, texts are strings, maps are objects.
 */
import { CID } from "multiformats/cid";
import type { Steps } from "../../util/async/steps.ts";
import { failure } from "../../util/errors.ts";
import { type Scalar, type Value, ValueBuilder, visitValueSteps } from "../dag_cbor/value.ts";
import { binary } from "../dag_cbor/visit.ts";

const textOf = (latin1: string): string => Buffer.from(latin1, "latin1").toString();

type Container = unknown[] | Record<string, unknown>;

/**
 * Converts a value to its JavaScript form. The function is iterative, because values may be deeply
 * nested.
 */
export function* toJsSteps(value: Value): Steps<unknown> {
  let root: unknown;
  const open: Container[] = [];
  let key = "";
  const add = (each: unknown) => {
    const parent = open.at(-1);
    if (parent === undefined) root = each;
    else if (Array.isArray(parent)) parent.push(each);
    // A plain assignment would fail for the key `__proto__`.
    else Object.defineProperty(parent, key, { value: each, enumerable: true, configurable: true, writable: true });
  };
  yield* visitValueSteps(value, () => 0, {
    enter(container) {
      const made = container instanceof Map ? {} : [];
      add(made);
      open.push(made);
    },
    leave: () => open.pop(),
    item: () => {},
    key: (latin1) => {
      key = textOf(latin1);
    },
    scalar: (scalar) => add(scalarJs(scalar)),
  });
  return root;
}

function scalarJs(scalar: Scalar): unknown {
  if (typeof scalar === "string") return textOf(scalar);
  if (typeof scalar === "bigint") {
    const number = Number(scalar);
    return Number.isSafeInteger(number) ? number : scalar;
  }
  return scalar;
}

const MAX_INTEGER = 2n ** 64n;

type Step = { readonly key?: string; readonly value: unknown } | "leave";

/**
 * Converts a JavaScript value to a value of the data model.
 *
 * @throws NodeError with the error text of the client libraries for anything that the data model
 * cannot express
 */
export function fromJs(given: unknown): Value {
  const builder = new ValueBuilder();
  const steps: Step[] = [{ value: given }];
  const path = new Set<object>();
  const open: object[] = [];
  for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
    if (step === "leave") {
      path.delete(open.pop() as object);
      builder.leave();
      continue;
    }
    const { key, value } = step;
    if (key !== undefined) builder.key(binary(Buffer.from(key)));
    const members = membersOf(value);
    if (members === undefined) {
      builder.add(scalarOf(value));
      continue;
    }
    if (path.has(value as object))
      throw failure("VALUE_NOT_ENCODABLE", { reason: "CBOR encode error: object contains circular references" });
    path.add(value as object);
    open.push(value as object);
    builder.enter(Array.isArray(value) ? "list" : "map");
    steps.push("leave");
    for (let at = members.length - 1; at >= 0; at -= 1) steps.push(members[at] as Step);
  }
  return builder.value;
}

/** Returns the members of a list or a map; undefined for a scalar. */
function membersOf(value: unknown): Exclude<Step, "leave">[] | undefined {
  if (typeof value !== "object" || value === null || isBytes(value) || CID.asCID(value) !== null) return undefined;
  if (Array.isArray(value)) return Array.from(value, (each: unknown) => ({ value: each }));
  const type = Object.prototype.toString.call(value).slice("[object ".length, -1);
  if (noMaps.has(type)) throw unsupportedType(type);
  const pairs: Iterable<readonly [unknown, unknown]> = value instanceof Map ? value : Object.entries(value);
  return Array.from(pairs, ([key, each]) => {
    if (typeof key !== "string") throw unsupported("Non-string Map keys are");
    return { key, value: each };
  });
}

/** Names of classes whose objects are not accepted as maps. */
const noMaps = new Set(["Date", "Error", "Promise", "RegExp", "Set", "URL", "WeakMap", "WeakSet"]);

const isBytes = (value: object): value is ArrayBufferView | ArrayBuffer =>
  ArrayBuffer.isView(value) || value instanceof ArrayBuffer;

function scalarOf(value: unknown): Scalar {
  if (value === null || typeof value === "boolean") return value;
  if (typeof value === "string") return binary(Buffer.from(value));
  if (typeof value === "number") {
    if (Number.isNaN(value)) throw unsupported("`NaN` is");
    if (!Number.isFinite(value)) throw unsupported("`Infinity` and `-Infinity` is");
    return Number.isSafeInteger(value) ? BigInt(value) : value;
  }
  if (typeof value === "bigint") {
    if (value >= MAX_INTEGER || value < -MAX_INTEGER) {
      throw failure("CBOR_INVALID", { reason: "CBOR decode error: encountered BigInt larger than allowable range" });
    }
    return value;
  }
  if (value === undefined) throw unsupported("`undefined` is");
  if (typeof value !== "object") throw unsupportedType(typeof value === "function" ? "Function" : typeof value);
  if (value instanceof Uint8Array) return value;
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  return CID.asCID(value) as CID;
}

const unsupported = (what: string) =>
  failure("VALUE_NOT_ENCODABLE", { reason: `${what} not supported by the IPLD Data Model and cannot be encoded` });
const unsupportedType = (type: string) =>
  failure("VALUE_NOT_ENCODABLE", { reason: `CBOR encode error: unsupported type: ${type}` });
