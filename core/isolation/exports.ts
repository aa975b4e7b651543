/**
 * The exports of a module for dependents in another thread: functions become asynchronous, and
 * values are copied.
 */

/** Depth to which objects are searched for functions. */
export const MAX_DEPTH = 4;

/** The form of exports: a value, a function with its path, or an object with such fields. */
export type Shape =
  | { readonly kind: "value"; readonly value: unknown }
  | { readonly kind: "function"; readonly path: readonly string[] }
  | { readonly kind: "object"; readonly fields: Readonly<Record<string, Shape>> };

/**
 * Returns the form of what a module exports.
 * @throws {TypeError} names the field that can be neither called nor copied
 */
export function shapeOf(value: unknown, path: readonly string[] = []): Shape {
  if (typeof value === "function") return { kind: "function", path };
  const fields = typeof value === "object" && value !== null && path.length < MAX_DEPTH ? fieldsOf(value) : [];
  if (fields.some(([, field]) => typeof field === "function" || typeof field === "object")) {
    return {
      kind: "object",
      fields: Object.fromEntries(fields.map(([name, one]) => [name, shapeOf(one, [...path, name])])),
    };
  }
  try {
    structuredClone(value);
  } catch {
    const name = path.length === 0 ? "what it returns" : path.join(".");
    throw new TypeError(`${name} can neither be copied to other modules nor be called by them`);
  }
  return { kind: "value", value };
}

/**
 * Returns the form without its values: only functions remain, which the host checks at each call.
 */
export function functionsOf(shape: Shape): Shape {
  if (shape.kind === "value") return { kind: "value", value: undefined };
  if (shape.kind === "function") return shape;
  const fields = Object.entries(shape.fields).filter(([, field]) => field.kind !== "value");
  return { kind: "object", fields: Object.fromEntries(fields.map(([name, field]) => [name, functionsOf(field)])) };
}

/** Returns the exports as the other thread sees them. `call` calls a function. */
export function mirrorOf(
  shape: Shape,
  call: (path: readonly string[], values: unknown[]) => Promise<unknown>,
): unknown {
  if (shape.kind === "value") return shape.value;
  if (shape.kind === "function") return (...values: unknown[]) => call(shape.path, values);
  return Object.fromEntries(Object.entries(shape.fields).map(([name, field]) => [name, mirrorOf(field, call)]));
}

/**
 * Whether the shape has a function at this path. The worker may call no other functions, such as
 * inherited ones.
 */
export function isFunctionAt(shape: Shape | undefined, path: readonly string[]): boolean {
  let at = shape;
  for (const name of path) {
    if (at?.kind !== "object" || !Object.hasOwn(at.fields, name)) return false;
    at = at.fields[name];
  }
  return at?.kind === "function";
}

/** Calls the function at this path of the exports. */
export function callAt(exported: unknown, path: readonly string[], values: readonly unknown[]): unknown {
  let owner: unknown;
  let found = exported;
  for (const name of path) {
    owner = found;
    found = (found as Record<string, unknown>)[name];
  }
  return (found as (...values: readonly unknown[]) => unknown).apply(owner, [...values]);
}

/** Returns the own fields of an object, and the methods of its class. */
function fieldsOf(value: object): [string, unknown][] {
  if (
    ArrayBuffer.isView(value) ||
    Array.isArray(value) ||
    value instanceof Map ||
    value instanceof Set ||
    value instanceof Date
  )
    return [];
  const found = new Map<string, unknown>(Object.entries(value));
  const methods = Object.getPrototypeOf(value) as object | null;
  if (methods === null || methods === Object.prototype) return [...found];
  for (const name of Object.getOwnPropertyNames(methods)) {
    const method = Object.getOwnPropertyDescriptor(methods, name)?.value as unknown;
    if (name !== "constructor" && typeof method === "function" && !found.has(name)) found.set(name, method);
  }
  return [...found];
}
