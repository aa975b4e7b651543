/** Formats the results of the cases. */
import type { CaseCall, CaseDifference, Compared } from "./family.ts";
import { type CaseOutcome, textOf } from "./play.ts";

export const isUnexplained = ({ difference, reason }: CaseOutcome): boolean =>
  difference !== undefined && reason === undefined;

/**
 * Returns counts, and a line for each reason of differences and for each pair of different error
 * texts, the most frequent first.
 */
export function summary(outcomes: readonly CaseOutcome[]): string {
  const differing = outcomes.filter(({ difference }) => difference !== undefined);
  const calls = outcomes.reduce((all, { calls }) => all + calls, 0);
  const words = outcomes.flatMap(({ otherWords }) => otherWords);
  return [
    `${outcomes.length} cases, ${calls} calls, ${words.length} errors with different texts, ${differing.length} differences, ${outcomes.filter(isUnexplained).length} not explained`,
    ...counted(differing.map(({ reason = "not explained" }) => reason)),
    ...counted(words.map((difference) => `different texts: ${wordsOf(difference)}`)),
  ].join("\n");
}

function counted(texts: readonly string[]): string[] {
  const groups = [...Map.groupBy(texts, (text) => text)].sort(([, a], [, b]) => b.length - a.length);
  return groups.map(([text, { length }]) => `${String(length).padStart(6)}  ${text}`);
}

/** Returns both texts of an error, without paths and CIDs, which are random. */
function wordsOf({ call, reference, ours }: CaseDifference): string {
  const text = ({ refusal = "" }: Compared) =>
    refusal
      .replaceAll(/\b(?:Qm|ba|12D3|k51)\w{40,}/g, "CID")
      .replaceAll(/\/?\bs\d+\b[^:,"\n]*?(?= is | was | to |[:,"]|$)/gm, "PATH")
      .replaceAll("\n", " / ");
  return `${call.path.split("?")[0]}: ${text(reference)} | ${text(ours)}`;
}

/** Returns the calls of a case and both responses. */
export function shown({ name, difference }: CaseOutcome): string {
  if (difference === undefined) return `${name}: no difference`;
  const { steps, reference, ours } = difference;
  const lines = [
    steps.map(({ call }) => callLine(call)).join(" ; "),
    `reference: ${textOf(reference)}`,
    `ours:      ${textOf(ours)}`,
  ];
  return [name, ...lines.map((line) => line.slice(0, 1500).replaceAll("\n", " | "))].join("\n    ");
}

function callLine({ path, parts, gateway }: CaseCall): string {
  if (gateway !== undefined) return `${gateway.method} ${path} ${JSON.stringify(gateway.headers)}`;
  if (parts === undefined) return path;
  const words = parts.map(({ name, filename, type = "", content = "" }) => {
    const shown = JSON.stringify(content.toString().slice(0, 60));
    return `${type.replace(/^application\//, "")} ${JSON.stringify(filename)} ${shown}${name === "file" ? "" : ` as ${name}`}`;
  });
  return `${path} [${words.join(", ")}]`;
}
