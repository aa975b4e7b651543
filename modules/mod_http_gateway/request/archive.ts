/** What an archive (CAR) shall have in it: by parameters of the query, or of the media type in Accept. */
import type { PathArchiveOptions } from "modhost/node";
import { Refusal } from "../errors/refusal.ts";

export interface ArchiveAsked {
  /** `unk` is told to whoever asks for it: the order is depth first all the same. */
  readonly order: "dfs" | "unk";
  readonly dups: "y" | "n";
  readonly scope: NonNullable<PathArchiveOptions["scope"]>;
  readonly range: PathArchiveOptions["range"];
}

/** @throws {Refusal} 400 */
export function archiveAsked(query: URLSearchParams, parameters: ReadonlyMap<string, string>): ArchiveAsked {
  const given = (name: string) => query.get(`car-${name}`) ?? parameters.get(name);
  oneOf("version", given("version") ?? "1", ["1"]);
  const order = oneOf("order", given("order") ?? "dfs", ["dfs", "unk"]);
  const dups = oneOf("dups", given("dups") ?? "n", ["y", "n"]);
  const range = rangeIn(query.get("entity-bytes"));
  const usual = range === undefined ? "all" : "entity";
  const asked = oneOf("scope", query.get("dag-scope") ?? usual, ["all", "entity", "block"]);
  // A range is of an entity, whatever else was asked for.
  const scope = range !== undefined && asked === "all" ? "entity" : asked;
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
  const [from, to] = [Number(first), last === "*" ? undefined : Number(last)];
  // Where one counts from the other end of the file, the file alone tells which is first.
  const isReversed = to !== undefined && from > to && from < 0 === to < 0;
  if (first === "" || isReversed) {
    throw new Refusal(400, `entity-bytes must be FROM:TO, such as 0:1023, -10:* or 0:*, not ${JSON.stringify(text)}`);
  }
  return { from, to };
}
