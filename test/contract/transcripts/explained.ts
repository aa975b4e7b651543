/**
 * The steps that differ from the recording: on purpose, by a table in
 * `docs/reference/transcripts.md`, or still.
 */
import { readFile, writeFile } from "node:fs/promises";
import type { LevelName, Step } from "./replay.ts";

export interface Explanation {
  /** `topic/name`. */
  readonly scenario: string;
  readonly step: number;
  /** What differs, as `aspectsOf` writes it. */
  readonly aspects: string;
  readonly reason: string;
}

const page = new URL("../../../docs/reference/transcripts.md", import.meta.url);

/** Topics of the level 0.43 begin so. */
const TODAY = "level-0.43-";

/**
 * Those of one level. Rows are `| scenario | steps | differs in | reason |`; steps are separated by
 * commas.
 */
export async function readExplanations(level: LevelName = "0.9"): Promise<readonly Explanation[]> {
  const all = parseExplanations(await readFile(page, "utf8"));
  return all.filter(({ scenario }) => scenario.startsWith(TODAY) === (level === "0.43"));
}

const leftFile = new URL("left-0.43.json", import.meta.url);

/** Steps of the level 0.43 that do not fit yet, by `topic/name`: the list only gets shorter. */
export type Left = Readonly<Record<string, readonly number[]>>;

export async function readLeft(level: LevelName): Promise<Left> {
  return level === "0.9" ? {} : JSON.parse(await readFile(leftFile, "utf8"));
}

/** A line for each scenario. */
export async function writeLeft(left: Left): Promise<void> {
  const lines = Object.entries(left)
    .filter(([, steps]) => steps.length > 0)
    .map(([scenario, steps]) => `  ${JSON.stringify(scenario)}: [${steps.join(", ")}]`);
  await writeFile(leftFile, `{\n${lines.join(",\n")}\n}\n`);
}

export function parseExplanations(text: string): readonly Explanation[] {
  return text.split("\n").flatMap((line) => {
    const [, scenario = "", steps = "", aspects = "", reason = ""] = line.split("|").map((cell) => cell.trim());
    if (!/^(level-0\.43-)?[a-z]+\/./.test(scenario)) return [];
    return steps.split(/,\s*/).map((step) => ({ scenario, step: Number(step), aspects, reason }));
  });
}

/** `status, head`: each once, in the order in which they are compared. */
export function aspectsOf({ differences }: Step): string {
  return [...new Set(differences.map(({ aspect }) => aspect))].join(", ");
}
