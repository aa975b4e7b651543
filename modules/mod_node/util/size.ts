/** Parses and prints human-readable sizes. */
import { failure } from "./errors.ts";
import { quote } from "./go/text.ts";

const prefixes = "kmgtpe";

/**
 * Returns the bytes of `10GB`, `500 MiB`, `1.5k` or `1000`.
 * @throws NodeError with go-ipfs's text
 */
export function parseSize(text: string): number {
  const [, digits = "", rest = ""] = /^([0-9.,]*)(.*)$/s.exec(text) ?? [];
  const number = Number(digits.replaceAll(",", ""));
  if (!/\d/.test(digits) || Number.isNaN(number)) {
    throw failure("SIZE_INVALID", { reason: `strconv.ParseFloat: parsing ${quote(digits)}: invalid syntax` });
  }
  const name = rest.trim().toLowerCase();
  const [, prefix = "", binary] = /^([kmgtpe]?)(i?)b?$/.exec(name) ?? [];
  if (name !== "" && name !== "b" && prefix === "")
    throw failure("SIZE_INVALID", { reason: `unhandled size name: ${name}` });
  const power = prefixes.indexOf(prefix) + 1;
  const size = number * (binary ? 1024 : 1000) ** (prefix === "" ? 0 : power);
  if (size >= 2 ** 64) throw failure("SIZE_INVALID", { reason: `too large: ${text}` });
  return Math.trunc(size);
}

/** Prints a size with at most three digits and decimal units, such as `234 MB`. */
export function sizeText(size: number | bigint): string {
  const bytes = Number(size);
  if (bytes < 10) return `${bytes} B`;
  const units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
  const step = Math.min(Math.floor(Math.log10(bytes) / 3), units.length - 1);
  const value = Math.floor((bytes / 1000 ** step) * 10 + 0.5) / 10;
  return `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ${units[step]}`;
}
