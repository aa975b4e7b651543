import type { ResponseHeaders } from "../types.ts";

/** Says that the answer depends on one more request header. */
export function addVary(headers: ResponseHeaders, name: string): void {
  const { vary } = headers;
  headers.vary = vary === undefined ? name : `${vary}, ${name}`;
}

/** Two values of `Vary` as one, each name once. */
export function mergedVary(first: unknown, second: string): string {
  const names = new Map<string, string>();
  for (const name of `${[first].flat().join(", ")}, ${second}`.split(",").map((part) => part.trim())) {
    if (name !== "" && !names.has(name.toLowerCase())) names.set(name.toLowerCase(), name);
  }
  return [...names.values()].join(", ");
}
