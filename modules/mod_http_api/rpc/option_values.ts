/** Parses option values as Go's strconv does. */

import { quote } from "modhost/node";
import type { OptionType } from "./command.ts";

type Scalar = Exclude<OptionType, "list">;

const ranges: Readonly<Record<"int" | "int64" | "uint" | "uint64", readonly [least: bigint, most: bigint]>> = {
  int: [-(2n ** 31n), 2n ** 31n - 1n],
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
  uint: [0n, 2n ** 32n - 1n],
  uint64: [0n, 2n ** 64n - 1n],
};

const booleans = new Map([
  ...["", "1", "t", "true"].map((word) => [word, true] as const),
  ...["0", "f", "false"].map((word) => [word, false] as const),
]);

/** Accepts base prefixes and digit separators; a leading zero means octal. */
const integer =
  /^([+-]?)(?:0x(_?[0-9a-f]+(?:_[0-9a-f]+)*)|0b(_?[01]+(?:_[01]+)*)|0o?(_?[0-7]+(?:_[0-7]+)*)|(0|[1-9][0-9]*(?:_[0-9]+)*))$/i;
const decimal = /^[+-]?(?:[0-9]+(?:_[0-9]+)*(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?$/i;
const special = new Map([
  ["inf", Number.POSITIVE_INFINITY],
  ["infinity", Number.POSITIVE_INFINITY],
  ["nan", Number.NaN],
]);

/**
 * Returns the value, or undefined if the text does not match the type. Integers beyond 2^53 lose
 * precision.
 */
function read(type: Scalar, text: string): boolean | number | string | undefined {
  switch (type) {
    case "string":
      return text;
    case "bool":
      return booleans.get(text.toLowerCase());
    case "float64":
      return readFloat(text);
    default:
      return readInteger(type, text);
  }
}

/** Fast path: short decimal numbers are within the range of every integer type. */
const short = /^(?:0|[1-9][0-9]{0,8})$/;

function readInteger(type: keyof typeof ranges, text: string): number | undefined {
  if (short.test(text)) return Number(text);
  const match = integer.exec(text);
  if (match === null || (type.startsWith("u") && match[1] !== "")) return undefined;
  const [, sign, hex, binary, octal, plain] = match;
  const digits = (hex ?? binary ?? octal ?? plain ?? "").replaceAll("_", "");
  const prefix = hex !== undefined ? "0x" : binary !== undefined ? "0b" : octal !== undefined ? "0o" : "";
  const size = BigInt(prefix + digits);
  const number = sign === "-" ? -size : size;
  const [least, most] = ranges[type];
  return number < least || number > most ? undefined : Number(number);
}

function readFloat(text: string): number | undefined {
  if (decimal.test(text) && !text.includes("_")) {
    const number = Number(text);
    return Number.isFinite(number) ? number : undefined;
  }
  const [, sign = "", word = ""] = /^([+-]?)([a-z]+)$/i.exec(text) ?? [];
  const known = special.get(word.toLowerCase());
  return known === undefined ? undefined : sign === "-" ? -known : known;
}

/** Returns the typed value of an option. @throws Error with the error text of go-ipfs */
export function convert(type: Scalar, text: string, name: string): boolean | number | string {
  const converted = read(type, text);
  if (converted !== undefined) return converted;
  const value = text === "" ? "empty value" : `value ${quote(text)}`;
  throw new Error(`could not convert ${value} to type "${type}" (for option "-${name}")`);
}
