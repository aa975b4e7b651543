/**
 * Reads values that cannot be trusted: each reader checks a form and returns a copy with nothing
 * else in it.
 */

/** A received value does not have the form that it must have. */
export class SchemaFault extends Error {}

/** Returns the value in its checked form. `at`: the path of the value, for the error. */
export type Reader<T> = (value: unknown, at: string) => T;

/** @throws {SchemaFault} */
export function refuse(at: string, what: string): never {
  throw new SchemaFault(`${at} is not ${what}`);
}

export const text =
  (maxLength: number, pattern?: RegExp): Reader<string> =>
  (value, at) => {
    if (typeof value !== "string" || value.length > maxLength) refuse(at, `a text of at most ${maxLength} characters`);
    if (pattern?.test(value) === false) refuse(at, `a text of the form ${pattern.source}`);
    return value;
  };

export const flag: Reader<boolean> = (value, at) => (typeof value === "boolean" ? value : refuse(at, "true or false"));

export const finite =
  (min: number, max: number): Reader<number> =>
  (value, at) =>
    typeof value === "number" && value >= min && value <= max ? value : refuse(at, `a number from ${min} to ${max}`);

export const oneOf =
  <const T extends readonly (string | undefined)[]>(values: T): Reader<T[number]> =>
  (value, at) =>
    values.includes(value as string) ? (value as T[number]) : refuse(at, `one of ${values.join(", ")}`);

/** Reads any value. The code that gets it in the end must not trust it either. */
export const anything: Reader<unknown> = (value) => value;

export const optional =
  <T>(reader: Reader<T>): Reader<T | undefined> =>
  (value, at) =>
    value === undefined ? undefined : reader(value, at);

export const list =
  <T>(reader: Reader<T>, maxLength: number): Reader<T[]> =>
  (value, at) => {
    if (!Array.isArray(value) || value.length > maxLength) refuse(at, `a list of at most ${maxLength} items`);
    return Array.from(value, (item, index) => reader(item, `${at}[${index}]`));
  };

/** An object with any names. */
export const table =
  <T>(reader: Reader<T>, maxLength: number, name: Reader<string> = text(200)): Reader<Record<string, T>> =>
  (value, at) => {
    const entries = Object.entries(objectIn(value, at));
    if (entries.length > maxLength) refuse(at, `an object of at most ${maxLength} fields`);
    return Object.fromEntries(
      entries.map(([field, one]) => {
        const checked = name(field, `a name in ${at}`);
        // Code that copies fields by assignment would set the prototype of the copy.
        if (checked === "__proto__") refuse(`a name in ${at}`, "a name other than __proto__");
        return [checked, reader(one, `${at}.${checked}`)];
      }),
    );
  };

/** An object with these fields. Fields of other names are left out, as are undefined ones. */
export const shape =
  <T extends object>(readers: { readonly [K in keyof T]-?: Reader<T[K]> }): Reader<T> =>
  (value, at) => {
    const given = objectIn(value, at) as Record<string, unknown>;
    const fields = Object.entries(readers as Record<string, Reader<unknown>>).flatMap(([name, reader]) => {
      const checked = reader(Object.hasOwn(given, name) ? given[name] : undefined, `${at}.${name}`);
      return checked === undefined ? [] : [[name, checked]];
    });
    return Object.fromEntries(fields) as T;
  };

function objectIn(value: unknown, at: string): object {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : refuse(at, "an object");
}
