/** Reads the parameters of an archive (CAR) from the query, or from the media type in Accept. */
import type { PathArchiveOptions } from "modhost/node";
import { Refusal } from "../errors/refusal.ts";

export interface RequestedArchive {
  /** `unk` is returned to clients that request it, although the order is always depth first. */
  readonly order: "dfs" | "unk";
  readonly dups: "y" | "n";
  readonly scope: NonNullable<PathArchiveOptions["scope"]>;
  readonly range: PathArchiveOptions["range"];
}

/** Reads the parameters of a request for an archive. @throws {Refusal} 400 */
export function requestedArchive(query: URLSearchParams, parameters: ReadonlyMap<string, string>): RequestedArchive {
  const given = (name: string) => query.get(`car-${name}`) ?? parameters.get(name);
  oneOf("version", given("version") ?? "1", ["1"]);
  const order = oneOf("order", given("order") ?? "dfs", ["dfs", "unk"]);
  const dups = oneOf("dups", given("dups") ?? "n", ["y", "n"]);
  const range = rangeIn(query.get("entity-bytes"));
  const usual = range === undefined ? "all" : "entity";
  const requested = oneOf("scope", query.get("dag-scope") ?? usual, ["all", "entity", "block"]);
  // A range refers to an entity, whatever scope is requested.
  const scope = range !== undefined && requested === "all" ? "entity" : requested;
  return { order, dups, scope, range };
}

function oneOf<T extends string>(what: string, given: string, allowed: readonly T[]): T {
  const found = allowed.find((each) => each === given);
  if (found !== undefined) return found;
  throw new Refusal(400, `the ${what} of an archive must be ${allowed.join(" or ")}, not ${JSON.stringify(given)}`);
}

function rangeIn(text: string | null): PathArchiveOptions["range"] {
  if (text === null) return undefined;
  const [, first = "", last = ""] = /^(-?\d{1,15}):(-?\d{1,15}|\*)$/.exec(text) ?? [];
  const from = Number(first);
  const to = last === "*" ? undefined : Number(last);
  // If one bound counts from the end of the file, only the file's length shows which bound is
  // first.
  const isReversed = to !== undefined && from > to && from < 0 === to < 0;
  if (first === "" || isReversed) {
    throw new Refusal(400, `entity-bytes must be FROM:TO, such as 0:1023, -10:* or 0:*, not ${JSON.stringify(text)}`);
  }
  return { from, to };
}
