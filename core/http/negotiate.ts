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

/**
 * Content codings that a client takes, by name, with their weight from 0 (refused) to 1 (RFC 9110 12.5.3). "*" is what it
 * does not name; where it names neither, it takes only `identity`.
 */
export function codingWeights(acceptEncoding: string | undefined): ReadonlyMap<string, number> {
  const weights = new Map<string, number>();
  for (const item of (acceptEncoding ?? "").toLowerCase().split(",")) {
    const [, name, weight] = /^\s*(?:x-(?=gzip))?([^\s;]+)\s*(?:;\s*q\s*=\s*([\d.]+)\s*)?$/.exec(item) ?? [];
    if (name !== undefined) weights.set(name, weight === undefined ? 1 : Math.min(Number(weight) || 0, 1));
  }
  return weights;
}

/**
 * The coding of `codings` that a client likes best; of those that it likes as much the first. Undefined: it would rather
 * have the plain bytes, or takes none of these.
 */
export function preferredCoding<C extends string>(
  weights: ReadonlyMap<string, number>,
  codings: readonly C[],
): C | undefined {
  const plain = weights.get("identity") ?? 0;
  let best: C | undefined;
  let most = 0;
  for (const coding of codings) {
    const weight = weights.get(coding) ?? weights.get("*") ?? 0;
    if (weight > most && weight >= plain) {
      best = coding;
      most = weight;
    }
  }
  return best;
}
