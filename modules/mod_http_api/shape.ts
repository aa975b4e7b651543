/** What results look like, said once: for the reference pages, OpenAPI, XML and the tests of the whole surface. */

/** Numbers keep the words of the reference: they say the range, JSON has but one kind. */
export type Scalar =
  | "string"
  | "bool"
  | "int"
  | "int32"
  | "int64"
  | "uint"
  | "uint64"
  | "float64"
  /** RFC 3339. */
  | "time"
  /** Nanoseconds. */
  | "duration"
  | "base64"
  /** `{"/": "<cid>"}`. */
  | "link"
  | "any";

export interface Fields {
  readonly kind: "fields";
  /** Of the reference's type: names the XML element and the OpenAPI schema. */
  readonly name: string | undefined;
  readonly fields: Readonly<Record<string, Shape>>;
  /** Left out when they are zero or empty. */
  readonly optional: readonly string[];
}

export interface MapOf {
  readonly kind: "map";
  readonly of: Shape;
}

/** A list is an array of one. */
export type Shape = Scalar | Fields | MapOf | readonly [Shape];

type Keys<F> = Extract<keyof F, string>;

/**
 * An object: `fields("KeyOutput", { Name: "string", Id: "string" })`. A name ending in `?` is left out of the answer
 * when its value is zero or empty.
 */
export function fields(name: string, of: Readonly<Record<string, Shape>>): Fields;
export function fields(of: Readonly<Record<string, Shape>>): Fields;
export function fields(
  first: string | Readonly<Record<string, Shape>>,
  second?: Readonly<Record<string, Shape>>,
): Fields {
  const [name, of] = typeof first === "string" ? [first, second ?? {}] : [undefined, first];
  const bare = (key: Keys<typeof of>) => key.replace(/\?$/, "");
  const keys = Object.keys(of);
  return {
    kind: "fields",
    name,
    fields: Object.fromEntries(keys.map((key) => [bare(key), of[key] as Shape])),
    optional: keys.filter((key) => key.endsWith("?")).map(bare),
  };
}

/** An object whose keys are data. */
export const map = (of: Shape): MapOf => ({ kind: "map", of });
