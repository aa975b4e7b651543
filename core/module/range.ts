type Version = readonly [major: number, minor: number, patch: number];

/**
 * True when a version lies in a range as package manifests write them: "^1.2.0", "~1.2", "1.x", ">=1.0 <3", "1 || 2",
 * "*". Pre-release tags count as the release they precede.
 */
export function inRange(version: string, range: string): boolean {
  const [exact] = partsOf(version);
  return range.split("||").some((alternative) =>
    alternative
      .replace(/([<>=~^])\s+/g, "$1")
      .trim()
      .split(/\s+/)
      .every((comparator) => holds(exact, comparator)),
  );
}

function holds(version: Version, comparator: string): boolean {
  const [, operator = "", text = ""] = /^(\^|~|>=|<=|>|<|=)?v?(.*)$/.exec(comparator) ?? [];
  const [lowest, given] = partsOf(text);
  if (given === 0) return operator !== "<" && operator !== ">";
  const next = (position: number) => lowest.map((part, at) => (at < position ? part : at === position ? part + 1 : 0));
  const firstSet = lowest.findIndex((part) => part > 0);
  const above = (bound: readonly number[]) => compare(version, bound) >= 0;
  switch (operator) {
    case ">=":
      return above(lowest);
    case "<":
      return !above(lowest);
    case ">":
      return above(next(given - 1));
    case "<=":
      return !above(next(given - 1));
    case "^":
      return above(lowest) && !above(next(Math.min(given - 1, firstSet < 0 ? 2 : firstSet)));
    case "~":
      return above(lowest) && !above(next(Math.min(1, given - 1)));
    default:
      return above(lowest) && !above(next(given - 1));
  }
}

/** The numbers of a version and how many were given: "1.x" is 1.0.0 with one given. */
function partsOf(text: string): [Version, number] {
  const numbers = text.split(/[-+]/)[0]?.split(".").map(Number) ?? [];
  const wild = numbers.findIndex((part, at) => !Number.isInteger(part) || text.split(".")[at] === "");
  const given = (wild < 0 ? numbers : numbers.slice(0, wild)).slice(0, 3);
  return [[given[0] ?? 0, given[1] ?? 0, given[2] ?? 0], given.length];
}

function compare(left: readonly number[], right: readonly number[]): number {
  for (const [at, part] of left.entries()) {
    const difference = part - (right[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
