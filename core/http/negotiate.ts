import Koa from "koa";

const { request } = new Koa();

/**
 * The type that a client prefers, by its Accept header: one of `types` ("html", "json", "text", ...), the first of
 * them when it has no preference or accepts none. Koa's own choice, without a context.
 */
export function preferredType<T extends string>(accept: string | undefined, types: readonly [T, ...T[]]): T {
  if (accept === undefined) return types[0];
  const asked: Koa.Request = Object.assign(Object.create(request), { req: { headers: { accept } } });
  const chosen = asked.accepts(...types);
  return types.find((type) => type === chosen) ?? types[0];
}
