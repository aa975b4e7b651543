/**
 * Steps that differ from the recording: on purpose, by a table in `docs/reference/transcripts.md`,
 * or because they are still to be fixed.
 */
import { readFile, writeFile } from "node:fs/promises";
import type { LevelName } from "#modules/mod_http_api/rpc/levels.ts";
import type { ReplayedStep } from "./replay.ts";

export interface Explanation {
  /** In the form `topic/name`. */
  readonly scenario: string;
  readonly step: number;
  /** The differing aspects, in the form of `aspectsOf`. */
  readonly aspects: string;
  readonly reason: string;
}

const page = new URL("../../../docs/reference/transcripts.md", import.meta.url);

/** Prefix of the topics of level 0.43. */
const LATER_TOPICS = "level-0.43-";

/**
 * Reads the explanations of one level. Rows are `| scenario | steps | differs in | reason |`; steps
 * are separated by commas.
 */
export async function readExplanations(level: LevelName = "0.9"): Promise<readonly Explanation[]> {
  const all = parseExplanations(await readFile(page, "utf8"));
  return all.filter(({ scenario }) => scenario.startsWith(LATER_TOPICS) === (level === "0.43"));
}

const leftFile = new URL("left-0.43.json", import.meta.url);

/** Steps of level 0.43 that do not pass yet, by `topic/name`. The list only gets shorter. */
export type LeftSteps = Readonly<Record<string, readonly number[]>>;

export async function readLeft(level: LevelName): Promise<LeftSteps> {
  return level === "0.9" ? {} : JSON.parse(await readFile(leftFile, "utf8"));
}

/** Writes a line for each scenario. */
export async function writeLeft(left: LeftSteps): Promise<void> {
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

/** Returns texts such as `status, head`: each aspect once, in the order of their comparison. */
export function aspectsOf({ differences }: ReplayedStep): string {
  return [...new Set(differences.map(({ aspect }) => aspect))].join(", ");
}
