/** JSON as the configuration file holds it: Go's reasons for what is none, and Go's way of printing it. */
import { NodeError } from "../errors.ts";
import { goJson } from "../go/text.ts";

/** An object of a JSON document; its keys are data, so look them up by `Object.hasOwn`. */
export type JsonObject = Readonly<Record<string, unknown>>;

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** @throws NodeError whose message is the bare reason */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new NodeError(new Scanner(Buffer.from(text)).fault(), { cause: error });
  }
}

/** The same value with the keys of every object in bytewise order, as Go writes maps. */
export function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  return Object.fromEntries(keysOf(value).map((key) => [key, sorted(value[key])]));
}

const keysOf = (value: JsonObject): string[] =>
  Object.keys(value).sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));

/** Indented by two blanks, without a newline at the end. `order`: keys as they stand, or in bytewise order. */
export function printJson(value: unknown, order: "kept" | "sorted" = "sorted", indent = ""): string {
  const isList = Array.isArray(value);
  if (!isList && !isObject(value)) return goJson(value);
  const deeper = `${indent}  `;
  const print = (inner: unknown) => printJson(inner, order, deeper);
  const parts = isList
    ? value.map(print)
    : (order === "kept" ? Object.keys(value) : keysOf(value)).map((key) => `${goJson(key)}: ${print(value[key])}`);
  const [open, close] = isList ? "[]" : "{}";
  if (parts.length === 0) return `${open}${close}`;
  return `${open}\n${parts.map((part) => deeper + part).join(",\n")}\n${indent}${close}`;
}

/** What is at a dotted path; letter case counts, lists have no keys. @throws NodeError with the bare reason */
export function getAt(document: unknown, path: string): unknown {
  const names = path.split(".");
  let value = document;
  for (const [at, name] of names.entries()) {
    const above = names.slice(0, at).join(".");
    if (!isObject(value)) throw new NodeError(`${above} key is not a map`);
    if (!Object.hasOwn(value, name)) throw new NodeError(`${above} key has no attributes`);
    value = value[name];
  }
  return value;
}

/** The same document with a value at a dotted path; objects that are missing are made. @throws NodeError */
export function setAt(document: JsonObject, path: string, value: unknown): JsonObject {
  return put(document, path.split("."), 0, value) as JsonObject;
}

function put(document: unknown, names: readonly string[], at: number, value: unknown): unknown {
  if (at === names.length) return value;
  if (!isObject(document)) throw new NodeError(`${names.slice(0, at).join(".")} key is not a map`);
  const name = names[at] as string;
  const inner = Object.hasOwn(document, name) ? (document[name] ?? {}) : {};
  return { ...document, [name]: put(inner, names, at + 1, value) };
}

const blank = /[ \t\r\n]/;
const digit = /[0-9]/;

/** What the text would have to go on with; thrown where it does not. */
class Fault extends Error {}

/** Finds the first byte that cannot be JSON. Go looks at bytes, and at a blank where the text ends. */
class Scanner {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  fault(): string {
    try {
      this.#value();
      this.#skip();
      if (this.#more) this.#unexpected("after top-level value");
    } catch (error) {
      if (error instanceof Fault) return error.message;
      throw error;
    }
    return "unexpected end of JSON input";
  }

  get #more(): boolean {
    return this.#at < this.#bytes.length;
  }

  /** The next byte as a letter, or the blank behind the end. */
  get #next(): string {
    return this.#more ? String.fromCharCode(this.#bytes[this.#at] as number) : " ";
  }

  #unexpected(place: string): never {
    const quotes: Readonly<Record<string, string>> = { "'": "\\'", '"': '"', "\\": "\\\\" };
    const plain = /[\x20-\x7e\xa1-\xac\xae-\xff]/;
    const next = this.#next;
    const control = { "\t": "\\t", "\n": "\\n", "\r": "\\r", "\b": "\\b", "\f": "\\f", "\v": "\\v", "\x07": "\\a" };
    const code = next.charCodeAt(0).toString(16);
    const hex = next < "\x80" ? `\\x${code.padStart(2, "0")}` : `\\u${code.padStart(4, "0")}`;
    const shown = quotes[next] ?? (plain.test(next) ? next : ((control as Record<string, string>)[next] ?? hex));
    throw new Fault(`invalid character '${shown}' ${place}`);
  }

  #end(): never {
    throw new Fault("unexpected end of JSON input");
  }

  #skip(): void {
    while (this.#more && blank.test(this.#next)) this.#at += 1;
  }

  #peek(): string {
    this.#skip();
    return this.#more ? this.#next : this.#end();
  }

  #value(): void {
    const first = this.#peek();
    const word = { t: "true", f: "false", n: "null" }[first];
    if (first === "{") this.#object();
    else if (first === "[") this.#array();
    else if (first === '"') this.#string();
    else if (first === "-" || digit.test(first)) this.#number();
    else if (word !== undefined) this.#literal(word);
    else this.#unexpected("looking for beginning of value");
  }

  #literal(word: string): void {
    for (const [at, letter] of [...word].entries()) {
      if (this.#next !== letter) this.#unexpected(`in literal ${word} (expecting '${letter}')`);
      if (at < word.length) this.#at += 1;
    }
  }

  #digits(place: string): void {
    if (!digit.test(this.#next)) this.#unexpected(place);
    while (digit.test(this.#next)) this.#at += 1;
  }

  #number(): void {
    if (this.#next === "-") this.#at += 1;
    if (this.#next === "0") this.#at += 1;
    else this.#digits("in numeric literal");
    if (this.#next === ".") {
      this.#at += 1;
      this.#digits("after decimal point in numeric literal");
    }
    if (!/e/i.test(this.#next)) return;
    this.#at += 1;
    if (/[+-]/.test(this.#next)) this.#at += 1;
    this.#digits("in exponent of numeric literal");
  }

  #string(): void {
    for (this.#at += 1; this.#more; this.#at += 1) {
      const letter = this.#next;
      if (letter === '"') {
        this.#at += 1;
        return;
      }
      if (letter < " ") this.#unexpected("in string literal");
      if (letter === "\\") this.#escape();
    }
    this.#end();
  }

  #escape(): void {
    this.#at += 1;
    if (!this.#more) this.#end();
    if (/["\\/bfnrt]/.test(this.#next)) return;
    if (this.#next !== "u") this.#unexpected("in string escape code");
    for (let read = 0; read < 4; read += 1) {
      this.#at += 1;
      if (!this.#more) this.#end();
      if (!/[0-9a-f]/i.test(this.#next)) this.#unexpected("in \\u hexadecimal character escape");
    }
  }

  #array(): void {
    this.#at += 1;
    if (this.#peek() === "]") {
      this.#at += 1;
      return;
    }
    for (;;) {
      this.#value();
      const next = this.#peek();
      if (next !== "," && next !== "]") this.#unexpected("after array element");
      this.#at += 1;
      if (next === "]") return;
    }
  }

  #object(): void {
    this.#at += 1;
    if (this.#peek() === "}") {
      this.#at += 1;
      return;
    }
    for (;;) {
      if (this.#peek() !== '"') this.#unexpected("looking for beginning of object key string");
      this.#string();
      if (this.#peek() !== ":") this.#unexpected("after object key");
      this.#at += 1;
      this.#value();
      const next = this.#peek();
      if (next !== "," && next !== "}") this.#unexpected("after object key:value pair");
      this.#at += 1;
      if (next === "}") return;
    }
  }
}
