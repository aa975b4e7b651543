/** Finds repeated names in a JSON text. */

interface Open {
  /** The names of an object so far; undefined in a list. */
  readonly names: Set<string> | undefined;
  isName: boolean;
}

/**
 * Returns the position of the first name that its object already has; undefined when no name is
 * repeated. `JSON.parse` silently uses the last one. The text must be valid JSON. `below`: check
 * only the value of this top-level name.
 */
export function repeatedName(text: string, below?: string): number | undefined {
  const open: Open[] = [];
  let isWithin = below === undefined;
  for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]+|\\.)*"|[{}[\]:,]/gs)) {
    const inner = open.at(-1);
    if (token === "{") open.push({ names: new Set(), isName: true });
    else if (token === "[") open.push({ names: undefined, isName: false });
    else if (token === "}" || token === "]") open.pop();
    else if (token === ":" && inner !== undefined) inner.isName = false;
    else if (token === "," && inner !== undefined) inner.isName = inner.names !== undefined;
    else if (inner?.names !== undefined && inner.isName) {
      const name = JSON.parse(token) as string;
      if (open.length === 1) isWithin = below === undefined || name === below;
      if (isWithin && inner.names.has(name)) return index;
      inner.names.add(name);
    }
  }
  return undefined;
}
