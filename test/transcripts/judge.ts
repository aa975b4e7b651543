/** What each replayed step amounts to. */
import { aspectsOf, type Explanation } from "./explained.ts";
import type { Skipped, Step } from "./replay.ts";

/** `later`: it needs a command that answers 501 for now. */
export const verdicts = ["passed", "explained", "later", "failed", "skipped"] as const;
export type Verdict = (typeof verdicts)[number];

export interface Judged {
  readonly topic: string;
  readonly name: string;
  readonly verdict: Verdict;
  /** A line for each thing to be said of it. */
  readonly remarks: readonly string[];
}

export interface Circumstances {
  readonly explanations: readonly Explanation[];
  /** The server has a network: while it has none, what needs one comes later. */
  readonly hasNetwork: boolean;
}

export function judge(
  report: readonly (Step | Skipped)[],
  { explanations, hasNetwork }: Circumstances,
): readonly Judged[] {
  const explained = new Map(explanations.map((one) => [keyOf(one.scenario, one.step), one]));
  // What follows a call that was not carried out cannot be as it was recorded.
  const lacking = new Set<string>();
  const offline = new Set(
    hasNetwork ? [] : report.filter((entry) => "step" in entry && needsNetwork(entry)).map(nameOf),
  );
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
    if (entry.ok) {
      return explanation === undefined ? verdictIs("passed") : verdictIs("failed", "it passes, though it is explained");
    }
    const aspects = aspectsOf(entry);
    if (aspects === explanation?.aspects) return verdictIs("explained", explanation.reason);
    if (isLater(entry)) lacking.add(scenario);
    if (lacking.has(scenario) || offline.has(scenario)) return verdictIs("later");
    if (explanation === undefined) return verdictIs("failed");
    return verdictIs("failed", `explained are differences in ${explanation.aspects}, not in ${aspects}`);
  });
}

/** Explanations of steps that are not among the recorded ones; only of topics that were played whole. */
export function unused(report: readonly (Step | Skipped)[], explanations: readonly Explanation[]): readonly string[] {
  const known = new Set(
    report.map((entry) => keyOf(`${entry.topic}/${entry.scenario}`, "step" in entry ? entry.step : undefined)),
  );
  const scenarios = new Set(report.map(({ topic, scenario }) => `${topic}/${scenario}`));
  return explanations
    .filter(({ scenario, step }) => scenarios.has(scenario) && !known.has(keyOf(scenario, step)))
    .map(({ scenario, step }) => `${scenario} ${step} is explained, but there is no such step`);
}

const nameOf = ({ topic, scenario }: Step | Skipped) => `${topic}/${scenario}`;
const keyOf = (scenario: string, step: number | undefined) => `${scenario} ${step}`;

const isLater = ({ differences }: Step) =>
  differences.some(({ aspect, got }) => aspect === "status" && String(got) === "501");

/** It is about an address that peers are met at, or was refused for want of a network. */
const needsNetwork = ({ differences }: Step) =>
  differences.some(({ got }) => /^blocked: no value for \{swarm[AB]\}$|must be run in online mode/.test(String(got)));

function remarksOf({ differences, quirk }: Step): string[] {
  const text = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
  const lines = differences.map(({ aspect, at, got, want }) => `${aspect} ${at}: got ${text(got)}, want ${text(want)}`);
  return quirk === undefined || differences.length === 0 ? lines : [...lines, `quirk of the reference: ${quirk}`];
}
