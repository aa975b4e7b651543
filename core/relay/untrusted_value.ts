/**
 * Checks values that hostile code has sent. A few bytes can describe a value that takes minutes or
 * gigabytes to use: a list of four billion empty items, or lists that contain each other.
 */

/** Maximum depth of objects in objects. */
const MAX_DEPTH = 128;

/** Maximum number of objects, if one that occurs several times counts each time. */
const MAX_OBJECTS = 1_000_000;

/**
 * The extent of a value if an object that occurs several times counts each time. `bytes` is the
 * least length of a message with this value in which no object is repeated.
 */
interface Extent {
  objects: number;
  bytes: number;
  depth: number;
}

/** Returns why a value is refused, as a phrase. `maxBytes`: the maximum length of a message. */
export function untrustedFault(value: unknown, maxBytes: number): string | undefined {
  const extents = new Map<object, Extent>();
  const fault = (text: string) => {
    throw new ValueFault(text);
  };
  const extentOf = (one: object, depth: number): Extent => {
    const known = extents.get(one);
    if (depth + (known?.depth ?? 0) > MAX_DEPTH) fault(`objects in objects to a depth of more than ${MAX_DEPTH}`);
    if (known !== undefined) return known;
    const extent: Extent = { objects: 1, bytes: 1, depth: 0 };
    // An object that contains itself is counted once: nothing that walks through it works
    // otherwise.
    extents.set(one, { objects: 1, bytes: 1, depth: 0 });
    const add = (part: unknown, bytes = typeof part === "string" ? part.length : 1) => {
      if (typeof part === "object" && part !== null) {
        const inner = extentOf(part, depth + 1);
        extent.objects += inner.objects;
        extent.bytes += inner.bytes;
        extent.depth = Math.max(extent.depth, inner.depth + 1);
      } else extent.bytes += bytes;
      if (extent.objects > MAX_OBJECTS) fault(`more than ${MAX_OBJECTS} objects`);
      // Code that copies or prints the value does so for each occurrence.
      if (extent.bytes > maxBytes) fault(`objects that are repeated to more than ${maxBytes} bytes`);
    };
    addParts(one, maxBytes, add, fault);
    extents.set(one, extent);
    return extent;
  };
  try {
    if (typeof value === "object" && value !== null) extentOf(value, 0);
    return undefined;
  } catch (error) {
    if (error instanceof ValueFault) return error.message;
    throw error;
  }
}

class ValueFault extends Error {}

/**
 * Calls `add` for the values in an object, and once for bytes that are no values. `fault` throws.
 */
function addParts(
  one: object,
  maxBytes: number,
  add: (part: unknown, bytes?: number) => void,
  fault: (text: string) => void,
): void {
  // A list with an item in each position takes a byte for each.
  if (Array.isArray(one) && one.length > maxBytes) fault("a list that is longer than its message");
  const buffer = ArrayBuffer.isView(one) ? one.buffer : one;
  if (buffer instanceof ArrayBuffer) {
    if (buffer.resizable) fault("a resizable buffer");
    add(undefined, buffer.byteLength);
    return;
  }
  // A pattern could take hours to match.
  if (one instanceof RegExp) fault("a regular expression");
  if (one instanceof Map) {
    for (const [key, part] of one) {
      add(key);
      add(part);
    }
    return;
  }
  if (one instanceof Set) {
    for (const part of one) add(part);
    return;
  }
  // Code that copies fields by assignment would set the prototype of the copy.
  if (Object.hasOwn(one, "__proto__")) fault("an object with the field __proto__");
  // These fields of an error are not enumerable, and whatever logs the error follows its cause.
  if (one instanceof Error) {
    for (const name of ["message", "stack", "cause"] as const) if (Object.hasOwn(one, name)) add(one[name]);
  }
  const parts = Object.values(one);
  for (const part of parts) add(part);
  // Code that walks through a list looks at its empty items as well.
  if (Array.isArray(one)) add(undefined, Math.max(0, one.length - parts.length));
}
