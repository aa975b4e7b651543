/**
 * Recorded requests whose responses differ on purpose: the table in
 * `docs/reference/gateway-transcripts.md`.
 */
import { readFile } from "node:fs/promises";
import type { Played } from "./replay.ts";

const page = new URL("../../../docs/reference/gateway-transcripts.md", import.meta.url);

/** Resolves to the reasons by `topic/id`. Rows are `| request | reason |`. */
export async function readExplanations(): Promise<ReadonlyMap<string, string>> {
  const rows = (await readFile(page, "utf8")).split("\n").map((line) => line.split("|").map((cell) => cell.trim()));
  return new Map(rows.flatMap(([, name = "", reason = ""]) => (/^[a-z]+\/./.test(name) ? [[name, reason]] : [])));
}

/** Returns differences without an explanation, and explanations of responses that do not differ. */
export function faultsOf(played: readonly Played[], explained: ReadonlyMap<string, string>): string[] {
  const faults = played.flatMap(({ id, state, differences }) => {
    if (explained.has(id)) return state === "ok" ? [`${id} is explained, but does not differ`] : [];
    return state === "differs" ? [[id, ...differences].join("\n    ")] : [];
  });
  const known = new Set(played.map(({ id }) => id));
  return [
    ...faults,
    ...[...explained.keys()].filter((id) => !known.has(id)).map((id) => `${id}: the request does not exist`),
  ];
}
