import { detachedContext } from "./detached.ts";

/**
 * The type that a client prefers, by its Accept header: one of `types` ("html", "json", "text", ...), the first of
 * them when it has no preference or accepts none.
 */
export function preferredType<T extends string>(accept: string | undefined, types: readonly [T, ...T[]]): T {
  if (accept === undefined) return types[0];
  const chosen = detachedContext({ accept }).accepts(...types);
  return types.find((type) => type === chosen) ?? types[0];
}
