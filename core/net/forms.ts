/** Encodes and decodes `application/x-www-form-urlencoded`. */
import { urldecode, urlencode } from "../util/url.ts";

/**
 * A decoded form: each name has its last value, and iterating yields every `[name, value]` pair in
 * the order sent. It has no prototype, so a field named `constructor` or `__proto__` is a field
 * like any other.
 */
export type Form = { readonly [name: string]: string | undefined } & Iterable<readonly [name: string, value: string]>;

/** Decodes a name or value; most need no decoding. */
const decodePlus = (text: string): string => urldecode(text.includes("+") ? text.replaceAll("+", " ") : text);
const encodePlus = (text: string): string => urlencode(text).replaceAll("%20", "+");

/**
 * Decodes a form body or a query string. The first `=` of a piece separates name and value, in both
 * `+` is a blank and escapes are UTF-8; a piece without `=` is dropped. A text without any `=` is
 * not a form: its decoded text is returned.
 */
export function formdecode(text: string): Form | string {
  if (!text.includes("=")) return urldecode(text);
  const pairs: (readonly [string, string])[] = [];
  const form: Record<string, string> = Object.create(null);
  for (const piece of text.split("&")) {
    const at = piece.indexOf("=");
    if (at < 0) continue;
    const name = decodePlus(piece.slice(0, at));
    const value = decodePlus(piece.slice(at + 1));
    pairs.push([name, value]);
    form[name] = value;
  }
  return Object.defineProperty(form, Symbol.iterator, { value: () => pairs.values() }) as unknown as Form;
}

/**
 * The values that a form can be encoded from: pairs in order (including a Map or a decoded form),
 * or an object of names and values.
 */
export type FormSource =
  | Iterable<readonly [name: string, value: string | number]>
  | Readonly<Record<string, string | number>>;

/** Encodes a form body: a blank becomes `+`, an empty form "". */
export function formencode(form: FormSource): string {
  const pairs = Symbol.iterator in form ? form : Object.entries(form);
  return Array.from(pairs, ([name, value]) => `${encodePlus(name)}=${encodePlus(String(value))}`).join("&");
}
