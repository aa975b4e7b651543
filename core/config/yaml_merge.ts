/**
 * Applies the merges (`<<`) of YAML, and limits how many values the aliases of a short text can
 * expand to.
 *
 * The option `merge` of the YAML library yields the same entries, but limits the number of aliases
 * instead. With its default, 100 hosts cannot merge one map. Without a limit, 2,000 hosts that
 * merge a map of 2,000 entries are four million values. The library also returns maps that contain
 * themselves, and its errors have no position in the text.
 */

/** Prefix of the internal names that replace the entries `<<` of a map. */
export const MERGE = "\u0000<<";

/**
 * Maximum number of values after aliases and merges are expanded. More than that is an attack or a
 * mistake.
 */
const MAX_VALUES = 250_000;

type Values = Record<string, unknown>;

/**
 * Returns the value with all merges applied: a map's own entries win over merged ones, and earlier
 * sources over later ones. Each value is read once, however many aliases refer to it.
 * @throws the error that `wrong` creates, for an alias inside its own value and for more than
 * `MAX_VALUES` values
 */
export function merged(given: unknown, wrong: (what: string) => Error): unknown {
  const tooMany = () => wrong(`aliases expand this text to more than ${MAX_VALUES} values`);
  const done = new Map<object, unknown>();
  /** The number of values that each value contains, itself included. */
  const sizes = new Map<unknown, number>();
  let taken = 0;

  const readMap = (map: Values): Values => {
    const result: Values = {};
    for (const [name, value] of Object.entries(map)) {
      const inner = read(value);
      if (!name.startsWith(MERGE)) define(result, name, inner);
      else for (const source of [inner].flat() as Values[]) mergeInto(result, source, map);
    }
    return result;
  };
  const mergeInto = (result: Values, source: Values, own: Values): void => {
    for (const [name, value] of Object.entries(source)) {
      taken += 1;
      if (taken > MAX_VALUES) throw tooMany();
      if (!Object.hasOwn(own, name) && !Object.hasOwn(result, name)) define(result, name, value);
    }
  };
  const read = (value: unknown): unknown => {
    if (!Array.isArray(value) && !isPlain(value)) return value;
    const known = done.get(value);
    if (known !== undefined) return known;
    if (done.has(value)) throw wrong("an alias refers to a value that contains it");
    done.set(value, undefined);
    const result = Array.isArray(value) ? value.map(read) : readMap(value);
    done.set(value, result);
    sizes.set(
      result,
      Object.values(result).reduce<number>((sum, inner) => sum + (sizes.get(inner) ?? 1), 1),
    );
    return result;
  };
  const value = read(given);
  // A long text may contain that many values without any alias.
  const values = sizes.get(value) ?? 1;
  if (values > MAX_VALUES && values > 2 * done.size) throw tooMany();
  return value;
}

/** Sets an own property, also for the name `__proto__`. */
function define(map: Values, name: string, value: unknown): void {
  Object.defineProperty(map, name, { value, writable: true, enumerable: true, configurable: true });
}

function isPlain(value: unknown): value is Values {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
