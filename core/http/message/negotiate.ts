import Koa from "koa";

const { request } = new Koa();

/** Maximum number of Accept headers whose result is cached: most clients send the same ones. */
const MAX_REMEMBERED = 500;
const MAX_REMEMBERED_LENGTH = 300;

/**
 * Returns a function that chooses a type by a client's Accept header: one of `types` ("html",
 * "json", "text", ...), or the first of them when the client has no preference or accepts none. It
 * uses Koa's own choice, without a context.
 */
export function preferredType<T extends string>(...types: readonly [T, ...T[]]): (accept: string | undefined) => T {
  const known = new Map<string, T>();
  return (accept) => {
    if (accept === undefined) return types[0];
    let type = known.get(accept);
    if (type === undefined) {
      const koaRequest: Koa.Request = Object.assign(Object.create(request), { req: { headers: { accept } } });
      const chosen = koaRequest.accepts(...types);
      type = types.find((one) => one === chosen) ?? types[0];
      if (known.size >= MAX_REMEMBERED) known.clear();
      if (accept.length <= MAX_REMEMBERED_LENGTH) known.set(accept, type);
    }
    return type;
  };
}

/**
 * Returns the content codings that a client accepts, by name, with their weight from 0 (refused) to
 * 1 (RFC 9110, 12.5.3). "*" stands for all codings that are not named. A header that names neither
 * a coding nor "*" accepts only `identity`.
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
 * Returns the coding of `codings` that a client prefers, the first of several with the same weight.
 * Undefined when it prefers the plain bytes or accepts none of these.
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
