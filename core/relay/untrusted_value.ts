/**
 * Checks values that hostile code has sent. A few bytes can describe a value that takes minutes or
 * gigabytes to use: a list of four billion empty items, or lists that contain each other.
 */

/** Maximum depth of objects in objects. */
const MAX_DEPTH = 128;

/** Maximum number of objects, if one that occurs several times counts each time. */
const MAX_OBJECTS = 1_000_000;

/** Returns why a value is refused, as a phrase. `bytes`: the length of its serialized form. */
export function untrustedFault(value: unknown, bytes: number): string | undefined {
  const sizes = new Map<object, number>();
  const fault = (text: string) => {
    throw new ValueFault(text);
  };
  const sizeOf = (one: unknown, depth: number): number => {
    if (typeof one !== "object" || one === null) return 0;
    const known = sizes.get(one);
    if (known !== undefined) return known;
    if (depth > MAX_DEPTH) fault(`objects in objects to a depth of more than ${MAX_DEPTH}`);
    // An object that contains itself is counted once: nothing that walks through it works
    // otherwise.
    sizes.set(one, 1);
    let size = 1;
    for (const part of partsOf(one, bytes, fault)) {
      size += sizeOf(part, depth + 1);
      if (size > MAX_OBJECTS) fault(`more than ${MAX_OBJECTS} objects`);
    }
    sizes.set(one, size);
    return size;
  };
  try {
    sizeOf(value, 0);
    return undefined;
  } catch (error) {
    if (error instanceof ValueFault) return error.message;
    throw error;
  }
}

class ValueFault extends Error {}

/** Returns the values in an object. `fault` throws. */
function partsOf(one: object, bytes: number, fault: (text: string) => void): Iterable<unknown> {
  // A list with an item in each position takes a byte for each.
  if (Array.isArray(one) && one.length > bytes) fault("a list that is longer than its message");
  const buffer = ArrayBuffer.isView(one) ? one.buffer : one;
  if (buffer instanceof ArrayBuffer) {
    if (buffer.resizable) fault("a resizable buffer");
    return [];
  }
  // A pattern could take hours to match.
  if (one instanceof RegExp) fault("a regular expression");
  if (one instanceof Map) return [...one.keys(), ...one.values()];
  if (one instanceof Set) return one;
  // Code that copies fields by assignment would set the prototype of the copy.
  if (Object.hasOwn(one, "__proto__")) fault("an object with the field __proto__");
  return Object.values(one);
}
