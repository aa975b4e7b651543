import type { ResponseHeaders } from "../../types.ts";

/** Adds a request header to those that the response depends on. */
export function addVary(headers: ResponseHeaders, name: string): void {
  const { vary } = headers;
  headers.vary = vary === undefined ? name : `${vary}, ${name}`;
}

/** Merges two values of `Vary`, each name once. */
export function mergedVary(first: unknown, second: string): string {
  const names = new Map<string, string>();
  for (const name of `${[first].flat().join(", ")}, ${second}`.split(",").map((part) => part.trim())) {
    if (name !== "" && !names.has(name.toLowerCase())) names.set(name.toLowerCase(), name);
  }
  return [...names.values()].join(", ");
}
