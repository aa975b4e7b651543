/** Judges each replayed step. */
import { aspectsOf, type Explanation, type LeftSteps } from "./explained.ts";
import type { ReplayedStep, Skipped } from "./replay.ts";

export const verdicts = ["passed", "explained", "left", "failed", "skipped"] as const;
export type Verdict = (typeof verdicts)[number];

export interface Judged {
  readonly topic: string;
  readonly name: string;
  readonly verdict: Verdict;
  /** Remarks about the step, one line each. */
  readonly remarks: readonly string[];
}

/** @param left steps that are known to differ: one that passes is a failure */
export function judge(
  report: readonly (ReplayedStep | Skipped)[],
  explanations: readonly Explanation[],
  left: LeftSteps = {},
): readonly Judged[] {
  const explained = new Map(explanations.map((one) => [keyOf(one.scenario, one.step), one]));
  return report.map((entry): Judged => {
    const scenario = nameOf(entry);
    const { topic } = entry;
    if ("skipped" in entry) return { topic, name: scenario, verdict: "skipped", remarks: [entry.skipped] };
    const name = `${scenario} ${entry.step}: ${entry.call}`;
    const remarks = remarksOf(entry);
    const verdictIs = (verdict: Verdict, ...more: string[]) => ({
      topic,
      name,
      verdict,
      remarks: [...remarks, ...more],
    });
    const explanation = explained.get(keyOf(scenario, entry.step));
    if (left[scenario]?.includes(entry.step)) {
      return entry.ok ? verdictIs("failed", "it passes, although it is listed as left") : verdictIs("left");
    }
    if (entry.ok) {
      return explanation === undefined
        ? verdictIs("passed")
        : verdictIs("failed", "it passes, although it is explained");
    }
    const aspects = aspectsOf(entry);
    if (aspects === explanation?.aspects) return verdictIs("explained", explanation.reason);
    if (explanation === undefined) return verdictIs("failed");
    return verdictIs("failed", `explained are differences in ${explanation.aspects}, not in ${aspects}`);
  });
}

/** Returns explanations of steps that were not recorded, for topics that were played completely. */
export function unused(
  report: readonly (ReplayedStep | Skipped)[],
  explanations: readonly Explanation[],
): readonly string[] {
  const known = new Set(
    report.map((entry) => keyOf(`${entry.topic}/${entry.scenario}`, "step" in entry ? entry.step : undefined)),
  );
  const scenarios = new Set(report.map(({ topic, scenario }) => `${topic}/${scenario}`));
  return explanations
    .filter(({ scenario, step }) => scenarios.has(scenario) && !known.has(keyOf(scenario, step)))
    .map(({ scenario, step }) => `${scenario} ${step} is explained, but the step does not exist`);
}

const nameOf = ({ topic, scenario }: ReplayedStep | Skipped) => `${topic}/${scenario}`;
const keyOf = (scenario: string, step: number | undefined) => `${scenario} ${step}`;

function remarksOf({ differences, quirk }: ReplayedStep): string[] {
  const text = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
  const lines = differences.map(({ aspect, at, got, want }) => `${aspect} ${at}: got ${text(got)}, want ${text(want)}`);
  return quirk === undefined || differences.length === 0 ? lines : [...lines, `quirk of the reference: ${quirk}`];
}
