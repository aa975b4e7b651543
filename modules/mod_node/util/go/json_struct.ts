/**
 * Decodes JSON into structs as Go does: keys in any case, `null` for nothing, and Go's error texts.
 */
import { ITEMS_PER_STEP, type Steps } from "../async/steps.ts";
import { failure, type NodeError } from "../errors.ts";
import { JsonReader, type JsonToken } from "./json.ts";
import { quote } from "./text.ts";

/** The place of a field, as Go names it: the struct, and the path from the root of the document. */
export interface FieldPath {
  readonly struct: string;
  readonly path: string;
}

/** Takes the value that begins with a token; a struct or a list in steps. */
type ReadValue = (token: JsonToken, place: FieldPath) => Steps<void> | void;
type Fields = Readonly<Record<string, ReadValue>>;

const kinds: Readonly<Partial<Record<JsonToken, string>>> = {
  "{": "object",
  "[": "array",
  text: "string",
  number: "number",
  true: "bool",
  false: "bool",
};

const MAX_UINT64 = 2n ** 64n - 1n;

/** Reads one document. The first misfit is reported at the end, if the whole is JSON. */
export class StructReader {
  /** Reads all of it beforehand, to see whether it is JSON. */
  readonly #whole: JsonReader;
  readonly #reader: JsonReader;
  readonly #strict: boolean;
  #fault: NodeError | undefined;
  #stop: NodeError | undefined;
  /**
   * The first token of a value that does not fit: its rest is skipped before anything else is read.
   */
  #refused: JsonToken | undefined;
  #read = 0;

  /** `strict`: unknown keys are refused. */
  constructor(bytes: Uint8Array, extent: "document" | "first", strict = false) {
    this.#whole = new JsonReader(bytes, extent);
    this.#reader = new JsonReader(bytes, extent);
    this.#strict = strict;
  }

  /**
   * `name` and `type` of the struct in Go; fields by their names.
   *
   * @throws NodeError with Go's text, for malformed JSON too
   */
  *document(name: string, type: string, fields: Fields): Steps<void> {
    while (this.#whole.next() !== "end") if (this.#isStep()) yield;
    yield* this.struct(this.#reader.next(), { struct: name, path: "" }, type, name, fields);
    const fault = this.#stop ?? this.#fault;
    if (fault !== undefined) throw fault;
  }

  *struct(
    token: JsonToken,
    place: FieldPath,
    type: string,
    name: string,
    fields: Fields,
    prefix = place.path === "" ? "" : `${place.path}.`,
  ): Steps<void> {
    if (token !== "{") {
      this.#refuse(token, place, type);
      return;
    }
    for (let next = this.#reader.next(); next !== "}"; next = this.#reader.next()) {
      if (this.#isStep()) yield;
      const key = Buffer.from(this.#reader.text).toString();
      const field = fieldNamed(fields, key);
      const value = this.#reader.next();
      if (field !== undefined) {
        const rest = fields[field]?.(value, { struct: name, path: `${prefix}${field}` });
        if (rest) yield* rest;
      } else {
        if (this.#strict) this.#unknown(key);
        this.#refused = value;
      }
      if (this.#refused !== undefined) yield* this.#skip(this.#refused);
    }
  }

  *list(token: JsonToken, place: FieldPath, type: string, take: (token: JsonToken) => Steps<void> | void): Steps<void> {
    if (token !== "[") {
      this.#refuse(token, place, type);
      return;
    }
    for (let next = this.#reader.next(); next !== "]"; next = this.#reader.next()) {
      if (this.#isStep()) yield;
      const rest = take(next);
      if (rest) yield* rest;
      if (this.#refused !== undefined) yield* this.#skip(this.#refused);
    }
  }

  /** Its UTF-8 bytes; undefined for null, and for a misfit. */
  text(token: JsonToken, place: FieldPath, type = "string"): Uint8Array | undefined {
    if (token === "text") return this.#reader.text;
    this.#refuse(token, place, type);
    return undefined;
  }

  uint64(token: JsonToken, place: FieldPath): number | undefined {
    if (token !== "number") {
      this.#refuse(token, place, "uint64");
      return undefined;
    }
    const { number } = this.#reader;
    const value = /^\d{1,20}$/.test(number) ? BigInt(number) : undefined;
    if (value === undefined || value > MAX_UINT64) this.#misfit(`number ${number}`, place, "uint64");
    else if (value > Number.MAX_SAFE_INTEGER) this.fail(`the size ${number} is more than any tree has`);
    return Number(value ?? 0n);
  }

  /** Whether `stop` was called: nothing more needs to be looked at. */
  get stopped(): boolean {
    return this.#stop !== undefined;
  }

  /** Records a fault in the content of a value; it comes before all misfits. */
  stop(message: string): void {
    this.#stop ??= failure("JSON_INVALID", { reason: message });
  }

  fail(message: string): void {
    this.#fault ??= failure("JSON_INVALID", { reason: message });
  }

  /** Null fits everything. */
  #refuse(token: JsonToken, place: FieldPath, type: string): void {
    if (token !== "null") this.#misfit(kinds[token] as string, place, type);
    this.#refused = token;
  }

  #unknown(key: string): void {
    if (this.#fault === undefined) this.fail(`json: unknown field ${quote(key)}`);
  }

  #misfit(found: string, { struct, path }: FieldPath, type: string): void {
    // Errors cost more than values, and only the first is told.
    if (this.#fault !== undefined) return;
    const into = path === "" ? "value" : `struct field ${struct}.${path}`;
    this.fail(`json: cannot unmarshal ${found} into Go ${into} of type ${type}`);
  }

  /** Skips the rest of a value. */
  *#skip(token: JsonToken): Steps<void> {
    this.#refused = undefined;
    let depth = 0;
    for (let next = token; ; next = this.#reader.next()) {
      if (this.#isStep()) yield;
      if (next === "{" || next === "[") depth += 1;
      else if (next === "}" || next === "]") depth -= 1;
      if (depth === 0) return;
    }
  }

  /** Counts what is read. */
  #isStep(): boolean {
    this.#read += 1;
    return this.#read % ITEMS_PER_STEP === 0;
  }
}

/** Case does not matter. Of fields that differ in nothing else the first is taken. */
function fieldNamed(fields: Fields, key: string): string | undefined {
  const folded = key.toLowerCase();
  for (const name in fields) if (name.toLowerCase() === folded) return name;
  return undefined;
}
