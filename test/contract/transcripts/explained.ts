/** The steps that differ from the recording on purpose: the table in `docs/reference/transcripts.md`. */
import { readFile } from "node:fs/promises";
import type { Step } from "./replay.ts";

export interface Explanation {
  /** `topic/name`. */
  readonly scenario: string;
  readonly step: number;
  /** What differs, as `aspectsOf` writes it. */
  readonly aspects: string;
  readonly reason: string;
}

const page = new URL("../../../docs/reference/transcripts.md", import.meta.url);

/** Rows are `| scenario | steps | differs in | reason |`; steps are separated by commas. */
export async function readExplanations(): Promise<readonly Explanation[]> {
  return parseExplanations(await readFile(page, "utf8"));
}

export function parseExplanations(text: string): readonly Explanation[] {
  return text.split("\n").flatMap((line) => {
    const [, scenario = "", steps = "", aspects = "", reason = ""] = line.split("|").map((cell) => cell.trim());
    if (!/^[a-z]+\/./.test(scenario)) return [];
    return steps.split(/,\s*/).map((step) => ({ scenario, step: Number(step), aspects, reason }));
  });
}

/** `status, head`: each once, in the order in which they are compared. */
export function aspectsOf({ differences }: Step): string {
  return [...new Set(differences.map(({ aspect }) => aspect))].join(", ");
}
