/**
 * Decodes JSON into structs as Go does: keys are case-insensitive, `null` leaves a field unset, and
 * error texts are Go's.
 */
import { ITEMS_PER_STEP, type Steps } from "../async/steps.ts";
import { failure, type NodeError } from "../errors.ts";
import { JsonReader, type JsonToken } from "./json.ts";
import { quote } from "./text.ts";

/**
 * Position of a field as Go's errors name it: the struct, and the path from the root of the
 * document.
 */
export interface FieldPath {
  readonly struct: string;
  readonly path: string;
}

/** Reads the value that begins with this token; structs and lists are read in steps. */
type ReadValue = (token: JsonToken, fieldPath: FieldPath) => Steps<void> | void;
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

/**
 * Reads one document. It reports the first value of a wrong type at the end, and only if the whole
 * document is valid JSON.
 */
export class StructReader {
  /** Reads the whole document first, to check that it is valid JSON. */
  readonly #whole: JsonReader;
  readonly #reader: JsonReader;
  readonly #strict: boolean;
  #fault: NodeError | undefined;
  #stop: NodeError | undefined;
  /**
   * The first token of a value that is to be ignored. The rest of the value is skipped before the
   * next one is read.
   */
  #refused: JsonToken | undefined;
  #read = 0;

  /** With `strict`, unknown keys are errors. */
  constructor(bytes: Uint8Array, extent: "document" | "first", strict = false) {
    this.#whole = new JsonReader(bytes, extent);
    this.#reader = new JsonReader(bytes, extent);
    this.#strict = strict;
  }

  /**
   * Reads the document. `name` and `type` are those of the struct in Go.
   * @throws NodeError with Go's text, also for malformed JSON
   */
  *document(name: string, type: string, fields: Fields): Steps<void> {
    while (this.#whole.next() !== "end") if (this.#isStep()) yield;
    yield* this.struct(this.#reader.next(), { struct: name, path: "" }, type, name, fields);
    const fault = this.#stop ?? this.#fault;
    if (fault !== undefined) throw fault;
  }

  *struct(
    token: JsonToken,
    fieldPath: FieldPath,
    type: string,
    name: string,
    fields: Fields,
    prefix = fieldPath.path === "" ? "" : `${fieldPath.path}.`,
  ): Steps<void> {
    if (token !== "{") {
      this.#refuse(token, fieldPath, type);
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

  *list(
    token: JsonToken,
    fieldPath: FieldPath,
    type: string,
    take: (token: JsonToken) => Steps<void> | void,
  ): Steps<void> {
    if (token !== "[") {
      this.#refuse(token, fieldPath, type);
      return;
    }
    for (let next = this.#reader.next(); next !== "]"; next = this.#reader.next()) {
      if (this.#isStep()) yield;
      const rest = take(next);
      if (rest) yield* rest;
      if (this.#refused !== undefined) yield* this.#skip(this.#refused);
    }
  }

  /** Returns the UTF-8 bytes of a string; undefined for null and for values of another type. */
  text(token: JsonToken, fieldPath: FieldPath, type = "string"): Uint8Array | undefined {
    if (token === "text") return this.#reader.text;
    this.#refuse(token, fieldPath, type);
    return undefined;
  }

  uint64(token: JsonToken, fieldPath: FieldPath): number | undefined {
    if (token !== "number") {
      this.#refuse(token, fieldPath, "uint64");
      return undefined;
    }
    const { number } = this.#reader;
    const value = /^\d{1,20}$/.test(number) ? BigInt(number) : undefined;
    if (value === undefined || value > MAX_UINT64) this.#misfit(`number ${number}`, fieldPath, "uint64");
    else if (value > Number.MAX_SAFE_INTEGER) this.fail(`the size ${number} is more than any tree has`);
    return Number(value ?? 0n);
  }

  /** Whether `stop` was called: the caller can skip the remaining values. */
  get stopped(): boolean {
    return this.#stop !== undefined;
  }

  /** Records an error in the content of a value. It takes precedence over type errors. */
  stop(message: string): void {
    this.#stop ??= failure("JSON_INVALID", { reason: message });
  }

  fail(message: string): void {
    this.#fault ??= failure("JSON_INVALID", { reason: message });
  }

  /** Records a type error, unless the value is null, and skips the value. */
  #refuse(token: JsonToken, fieldPath: FieldPath, type: string): void {
    if (token !== "null") this.#misfit(kinds[token] as string, fieldPath, type);
    this.#refused = token;
  }

  #unknown(key: string): void {
    if (this.#fault === undefined) this.fail(`json: unknown field ${quote(key)}`);
  }

  #misfit(found: string, { struct, path }: FieldPath, type: string): void {
    // Creating an error is slow, and only the first one is reported.
    if (this.#fault !== undefined) return;
    const into = path === "" ? "value" : `struct field ${struct}.${path}`;
    this.fail(`json: cannot unmarshal ${found} into Go ${into} of type ${type}`);
  }

  /** Skips the rest of the value that begins with this token. */
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

  /** Counts a token; true when it is time to yield. */
  #isStep(): boolean {
    this.#read += 1;
    return this.#read % ITEMS_PER_STEP === 0;
  }
}

/**
 * Finds a field, ignoring case. Among fields whose names differ only in case, the first one wins.
 */
function fieldNamed(fields: Fields, key: string): string | undefined {
  const folded = key.toLowerCase();
  for (const name in fields) if (name.toLowerCase() === folded) return name;
  return undefined;
}
