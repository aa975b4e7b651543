/**
 * Result schemas. The types of what commands return and print, the reference pages, the OpenAPI
 * document, the XML encoding and the tests of the whole API are all derived from them.
 */

import type { GoText } from "modhost/node";
import type { CID } from "multiformats/cid";

/** Numeric types have Go's names, because these tell the range; JSON has only one number type. */
interface Scalars {
  readonly string: string;
  readonly bool: boolean;
  readonly int: number;
  readonly int32: number;
  readonly int64: number;
  readonly uint: number;
  readonly uint64: number | bigint;
  readonly float64: number;
  /** A time as RFC 3339. */
  readonly time: string;
  /** A duration in nanoseconds. */
  readonly duration: number;
  readonly base64: string;
  /** A string whose bytes need not be valid UTF-8. */
  readonly bytes: GoText;
  /** A link to a block: `{"/": "<cid>"}` in JSON. */
  readonly link: CID;
  readonly any: unknown;
}

export type Scalar = keyof Scalars;

/** Field shapes by name. */
export type Members = Readonly<Record<string, Shape>>;

export interface Fields<M extends Members = Members, O extends string = string> {
  readonly kind: "fields";
  /** Name of go-ipfs's Go type, used for the XML element and the OpenAPI schema. */
  readonly name: string | undefined;
  readonly fields: M;
  /** Fields that are omitted when zero or empty. */
  readonly optional: readonly O[];
  /** The optional fields that came with Kubo 0.43. The level 0.9 does not declare them. */
  readonly later: readonly string[];
}

export interface MapOf<S extends Shape = Shape> {
  readonly kind: "map";
  readonly of: S;
}

export interface Nullable<S extends Shape = Shape> {
  readonly kind: "nullable";
  readonly of: S;
}

/** A list is written as an array with one element, the shape of its items. */
export type Shape = Scalar | Fields | MapOf | Nullable | readonly [Shape];

/**
 * The type of values of a shape, as commands return them; unknown if the shape itself is not known
 * statically.
 */
export type ValueOf<S extends Shape> = [Shape] extends [S] ? unknown : Valued<S>;

type Valued<S> = S extends Scalar
  ? Scalars[S]
  : S extends Fields<infer M, infer O>
    ? { readonly [K in Exclude<keyof M, O>]: Valued<M[K]> } & { readonly [K in keyof M & O]?: Valued<M[K]> }
    : S extends MapOf<infer T>
      ? Readonly<Record<string, Valued<T>>>
      : S extends Nullable<infer T>
        ? Valued<T> | null
        : S extends readonly [infer T]
          ? readonly Valued<T>[]
          : never;

type Marked<K> = K extends `${infer N}?` ? N : K extends `${infer N}?+` ? N : never;
type Bare<K> = [Marked<K>] extends [never] ? K : Marked<K>;
type FieldsOf<M> = Fields<{ readonly [K in keyof M as Bare<K>]: Extract<M[K], Shape> }, Marked<keyof M>>;

/**
 * Declares an object: `fields("KeyOutput", { Name: "string", Id: "string" })`. A field whose name
 * ends in `?` is omitted when its value is zero or empty. A field whose name ends in `?+` is also
 * omitted then, and came with Kubo 0.43.
 */
export function fields<const M extends Members>(name: string, of: M): FieldsOf<M>;
export function fields<const M extends Members>(of: M): FieldsOf<M>;
export function fields(first: string | Members, second: Members = {}): Fields {
  const [name, of] = typeof first === "string" ? [first, second] : [undefined, first];
  const bare = (key: string) => key.replace(/\?\+?$/, "");
  const keys = Object.keys(of);
  return {
    kind: "fields",
    name,
    fields: Object.fromEntries(keys.map((key) => [bare(key), of[key] as Shape])),
    optional: keys.filter((key) => /\?\+?$/.test(key)).map(bare),
    later: keys.filter((key) => key.endsWith("?+")).map(bare),
  };
}

/** Returns the shape without the fields that came later; the same object if there are none. */
export function withoutLater(shape: Shape): Shape {
  if (typeof shape === "string") return shape;
  if (!("kind" in shape)) {
    const item = withoutLater(shape[0]);
    return item === shape[0] ? shape : [item];
  }
  if (shape.kind !== "fields") {
    const of = withoutLater(shape.of);
    return of === shape.of ? shape : { ...shape, of };
  }
  const remaining = Object.entries(shape.fields).filter(([name]) => !shape.later.includes(name));
  const plain = remaining.map(([name, of]) => [name, withoutLater(of)] as const);
  const isSame = shape.later.length === 0 && plain.every(([name, of]) => of === shape.fields[name]);
  return isSame
    ? shape
    : {
        ...shape,
        fields: Object.fromEntries(plain),
        optional: shape.optional.filter((name) => !shape.later.includes(name)),
        later: [],
      };
}

/** Declares an object with arbitrary keys. */
export const map = <const S extends Shape>(of: S): MapOf<S> => ({ kind: "map", of });

/** Declares a value that may be null, like Go's nil slices and missing links. */
export const nullable = <const S extends Shape>(of: S): Nullable<S> => ({ kind: "nullable", of });
