/**
 * Encodes values as XML, like go-ipfs: elements are named after the shape, and maps are not
 * supported.
 */

import { failure, GoText } from "modhost/node";
import { CID } from "multiformats/cid";
import type { Shape } from "./shape.ts";

const escapes: Readonly<Record<string, string>> = {
  '"': "&#34;",
  "'": "&#39;",
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  "\t": "&#x9;",
  "\n": "&#xA;",
  "\r": "&#xD;",
};

/** Characters that XML cannot represent. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const illegal = /[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g;

export const escapeXml = (text: string): string =>
  text.replace(/["'&<>\t\n\r]/g, (letter) => escapes[letter] as string).replace(illegal, "\ufffd");

/** @throws NodeError for a value that contains a map */
export function toXml(value: unknown, shape: Shape): string {
  return element(nameOf(shape), value, shape);
}

function nameOf(shape: Shape): string {
  if (typeof shape === "string") return shape;
  return "kind" in shape && shape.kind === "fields" ? (shape.name ?? "Value") : "Value";
}

function element(name: string, value: unknown, shape: Shape): string {
  if (value === null || value === undefined) return "";
  if (typeof shape === "object" && "kind" in shape && shape.kind === "nullable") return element(name, value, shape.of);
  if (Array.isArray(value)) {
    const each = Array.isArray(shape) ? (shape[0] as Shape) : "any";
    return value.map((one) => element(name, one, each)).join("");
  }
  if (typeof value !== "object" || value instanceof CID || value instanceof GoText) {
    return `<${name}>${escapeXml(String(value))}</${name}>`;
  }
  const fields = typeof shape === "object" && "kind" in shape && shape.kind === "fields" ? shape.fields : undefined;
  if (fields === undefined) throw failure("VALUE_NOT_ENCODABLE", { reason: "xml: unsupported type: map" });
  const inner = Object.entries(value).map(([key, each]) => element(key, each, fields[key] ?? "any"));
  return `<${name}>${inner.join("")}</${name}>`;
}
