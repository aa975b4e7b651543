/** Lists the results of all test vectors, and which differences are intended. */
import { readFileSync, writeFileSync } from "node:fs";
import type { LevelName } from "#modules/mod_http_api/rpc/levels.ts";
import { readLaterVectors } from "./kubo_0_43.ts";
import { readVectors, type Vector, vectorFiles } from "./plan.ts";
import type { Player, VectorOutcome } from "./play.ts";

export interface Result {
  readonly vector: Vector;
  readonly outcome: VectorOutcome;
}

const document = new URL("../../../docs/reference/vectors.md", import.meta.url);

/** Prefix of the ids of vectors of level 0.43. */
const LATER_IDS = "l43-";

/**
 * Returns ids of the vectors that differ on purpose, with the reasons: the rows of the table in the
 * document.
 */
export function explained(level: LevelName = "0.9"): ReadonlyMap<string, string> {
  const rows = readFileSync(document, "utf8").matchAll(/^\| `([^`]+)` \| (.+) \|$/gm);
  const all = [...rows].map(([, id = "", reason = ""]) => [id, reason] as const);
  return new Map(all.filter(([id]) => id.startsWith(LATER_IDS) === (level === "0.43")));
}

const leftFile = new URL("left-0.43.json", import.meta.url);

/** Returns ids of the vectors of level 0.43 that do not pass yet. The list only gets shorter. */
export function left(level: LevelName): ReadonlySet<string> {
  return new Set(level === "0.9" ? [] : (JSON.parse(readFileSync(leftFile, "utf8")) as string[]));
}

/** Deletes vectors that pass from the list of those that are left. */
export function shortenLeft(results: readonly Result[]): void {
  const passing = new Set(results.flatMap(({ vector, outcome }) => (outcome.kind === "passes" ? [vector.id] : [])));
  const still = [...left("0.43")].filter((id) => !passing.has(id));
  writeFileSync(leftFile, `${JSON.stringify(still, undefined, 2)}\n`);
}

/** Vectors that need a node without other content. */
const needsEmpty = /^(pin|repo|files)\//;

export interface VectorGroup {
  readonly name: string;
  readonly vectors: readonly Vector[];
}

/**
 * Returns all vectors by their groups, in the order in which one node can play them. Vectors that
 * change the configuration come last, in groups of their own, because a sharded root directory
 * stays sharded.
 */
export function groups(accept: (vector: Vector) => boolean, level: LevelName = "0.9"): readonly VectorGroup[] {
  const byName = new Map<string, Vector[]>();
  const vectors = (level === "0.43" ? readLaterVectors() : vectorFiles.flatMap(readVectors)).filter(accept);
  for (const changing of [false, true]) {
    for (const vector of vectors) {
      if ((vector.config !== undefined) !== changing) continue;
      const name = changing ? `${vector.group}, configured` : vector.group;
      byName.set(name, [...(byName.get(name) ?? []), vector]);
    }
  }
  return [...byName].map(([name, vectors]) => ({ name, vectors }));
}

export async function playGroup(player: Player, { vectors }: VectorGroup): Promise<Result[]> {
  const results: Result[] = [];
  for (const vector of vectors) {
    if (needsEmpty.test(vector.endpoint)) await player.empty();
    results.push({ vector, outcome: await player.play(vector) });
  }
  return results;
}

/**
 * Prints a table by group, and the differences. `whole`: all vectors were played, so explanations
 * can be checked, too.
 */
export function report(
  results: readonly Result[],
  { verbose, whole, level = "0.9" }: { readonly verbose: boolean; readonly whole: boolean; readonly level?: LevelName },
): { readonly text: string; readonly ok: boolean } {
  const still = left(level);
  const reasons = new Map([...explained(level), ...[...still].map((id) => [id, "still to be done"] as const)]);
  const wrong: string[] = [];
  const counts = new Map<string, Record<string, number>>();
  for (const { vector, outcome } of results) {
    const reason = reasons.get(vector.id);
    const isKnown = outcome.kind === "differs" && reason !== undefined;
    const kind = isKnown ? (still.has(vector.id) ? "left" : "explained") : outcome.kind;
    const row = counts.get(vector.group) ?? {};
    counts.set(vector.group, row);
    row[kind] = (row[kind] ?? 0) + 1;
    if (outcome.kind === "differs" && (reason === undefined || verbose)) {
      const meant = reason === undefined ? "" : ` (meant: ${reason})`;
      const line = `${vector.group}/${vector.id}${meant}\n  ${outcome.differences.join("\n  ")}`;
      wrong.push(line);
    }
    if (outcome.kind === "passes" && reason !== undefined) {
      wrong.push(
        `${vector.group}/${vector.id} passes, although docs/reference/vectors.md or left-0.43.json says that it differs`,
      );
    }
  }
  const known = new Set(results.map(({ vector }) => vector.id));
  const stale = whole ? [...reasons.keys()].filter((id) => !known.has(id)) : [];
  for (const id of stale) wrong.push(`docs/reference/vectors.md explains ${id}, but this vector does not exist`);
  const unexplained = results.some(({ vector, outcome }) => outcome.kind === "differs" && !reasons.has(vector.id));
  const unneeded = results.some(({ vector, outcome }) => outcome.kind === "passes" && reasons.has(vector.id));
  return { text: [...wrong, table(counts)].join("\n"), ok: !unexplained && !unneeded && stale.length === 0 };
}

const kinds = ["passes", "explained", "left", "differs", "none"];
const titles = ["pass", "meant", "left", "differ", "no call"];

function table(counts: ReadonlyMap<string, Readonly<Record<string, number>>>): string {
  const line = (first: string, cells: readonly (string | number)[]) =>
    first.padEnd(24) + cells.map((cell) => String(cell).padStart(9)).join("");
  const rows = [...counts].map(([group, row]) =>
    line(
      group,
      kinds.map((kind) => row[kind] ?? 0),
    ),
  );
  const total = kinds.map((kind) => [...counts.values()].reduce((sum, row) => sum + (row[kind] ?? 0), 0));
  return [line("", titles), ...rows, line("", total)].join("\n");
}
