/** Reads nodes from JSON: from the older form of go-ipfs, and from dag-json. */

import { atOnce, ITEMS_PER_STEP, type Steps } from "../../util/async/steps.ts";
import { failure } from "../../util/errors.ts";
import { JsonReader } from "../../util/go/json.ts";
import { parseCid } from "../cid/text.ts";
import { type Value, ValueBuilder, type ValueMap } from "../dag_cbor/value.ts";
import { binary } from "../dag_cbor/visit.ts";

/**
 * Reads the older form: every number is a float, `{"/": "<cid>"}` is a link, the last of two equal
 * keys counts, and anything after the first value is ignored.
 *
 * @throws NodeError with the error text of go-ipfs
 */
export const readJson = (bytes: Uint8Array): Value => atOnce(readJsonSteps(bytes));

/** Same as `readJson`, in steps. */
export const readJsonSteps = (bytes: Uint8Array): Steps<Value> =>
  new Reader(new JsonReader(bytes, "first"), legacy).read();

/**
 * Reads dag-json ("DAG-JSON specification"): numbers without point and exponent are integers,
 * `{"/": "<cid>"}` is a link, `{"/": {"bytes": "<base64>"}}` are bytes, and keys are unique.
 *
 * @throws NodeError
 */
export const readDagJson = (bytes: Uint8Array): Value => atOnce(readDagJsonSteps(bytes));

/** Same as `readDagJson`, in steps. */
export const readDagJsonSteps = (bytes: Uint8Array): Steps<Value> =>
  new Reader(new JsonReader(bytes, "document"), dagJson).read();

/**
 * Reads plain JSON, the codec `json`: like dag-json, but without links and bytes.
 *
 * @throws NodeError
 */
export const readPlainJsonSteps = (bytes: Uint8Array): Steps<Value> =>
  new Reader(new JsonReader(bytes, "document"), plain).read();

/**
 * The differences between the forms. An error that a method throws is reported only after the whole
 * input was found to be valid JSON.
 */
interface Form {
  number(text: string): Value;
  /** Returns the value of a map whose only key is `/`; undefined if it is an ordinary map. */
  special(inner: Value): Value | undefined;
  readonly repeats: boolean;
}

const legacy: Form = {
  number: float,
  special(inner) {
    if (typeof inner !== "string") throw failure("DAG_JSON_INVALID", { reason: "link should have been a string" });
    return linkOf(inner);
  },
  repeats: true,
};

const dagJson: Form = {
  number: (text) => (/[.eE]/.test(text) ? float(text) : integer(text)),
  special(inner) {
    if (typeof inner === "string") return linkOf(inner);
    const text = inner instanceof Map && inner.size === 1 ? inner.get("bytes") : undefined;
    if (typeof text !== "string") return undefined;
    if (!/^[A-Za-z0-9+/]*$/.test(text))
      throw failure("DAG_JSON_INVALID", { reason: "bytes are not in base64 without padding" });
    return new Uint8Array(Buffer.from(text, "base64"));
  },
  repeats: false,
};

const plain: Form = { ...dagJson, special: () => undefined };

const linkOf = (text: string) => parseCid(Buffer.from(text, "latin1").toString());

function float(text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value)) {
    throw failure("DAG_JSON_INVALID", {
      reason: `json: cannot unmarshal number ${text} into Go value of type float64`,
    });
  }
  return value;
}

function integer(text: string): bigint {
  // A longer text cannot be a 64-bit number, and is slow to parse.
  const value = text.length > 24 ? undefined : BigInt(text);
  if (value === undefined || value < -(2n ** 63n) || value >= 2n ** 64n) {
    throw failure("DAG_JSON_INVALID", { reason: `the integer ${text.slice(0, 24)} does not fit into 64 bits` });
  }
  return value;
}

class Reader {
  readonly #json: JsonReader;
  readonly #form: Form;
  readonly #builder = new ValueBuilder();
  #fault: unknown;

  constructor(json: JsonReader, form: Form) {
    this.#json = json;
    this.#form = form;
  }

  *read(): Steps<Value> {
    const json = this.#json;
    const builder = this.#builder;
    for (let items = 1; ; items += 1) {
      if (items % ITEMS_PER_STEP === 0) yield;
      const token = json.next();
      if (token === "end") break;
      else if (token === "{") builder.enter("map");
      else if (token === "[") builder.enter("list");
      else if (token === "}") builder.leave((map) => this.#closed(map as ValueMap));
      else if (token === "]") builder.leave();
      else if (token === "key") this.#key(binary(json.text));
      else builder.add(this.#scalar(token));
    }
    if (this.#fault !== undefined) throw this.#fault;
    return builder.value;
  }

  #key(key: string): void {
    if (!this.#form.repeats && this.#builder.has(key))
      this.#fault ??= failure("DAG_JSON_INVALID", { reason: `repeated key "${key}"` });
    this.#builder.key(key);
  }

  #scalar(token: "text" | "number" | "true" | "false" | "null"): Value {
    if (token === "text") return binary(this.#json.text);
    if (token === "number") return this.#try(() => this.#form.number(this.#json.number));
    return token === "null" ? null : token === "true";
  }

  #closed(map: ValueMap): Value {
    const inner = map.size === 1 ? map.get("/") : undefined;
    return inner === undefined ? map : this.#try(() => this.#form.special(inner) ?? map);
  }

  /**
   * Only the first error is reported, and creating errors is expensive: no more values are made
   * after it.
   */
  #try(make: () => Value): Value {
    if (this.#fault !== undefined) return null;
    try {
      return make();
    } catch (error) {
      this.#fault ??= error;
      return null;
    }
  }
}
