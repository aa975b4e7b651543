import type { MetricDeclaration, MetricDeclarations } from "../types.ts";

const namePattern = /^[a-zA-Z_][a-zA-Z0-9_]*$/;
const kinds: readonly unknown[] = ["counter", "gauge", "histogram"];

/** Returns the problems of metric declarations, in words; empty if there are none. */
export function metricFaults(metrics: MetricDeclarations): string[] {
  if (typeof metrics !== "object" || metrics === null) return ["metrics is an object from name to declaration"];
  return Object.entries(metrics).flatMap(([name, declaration]) =>
    faultsOf(name, declaration).map((fault) => `${name}: ${fault}`),
  );
}

function faultsOf(name: string, declaration: MetricDeclaration): string[] {
  const faults: string[] = [];
  const { kind, help, unit, labels = [], buckets } = declaration ?? {};
  if (!namePattern.test(name)) faults.push("a name has letters, digits and underscores, and begins with no digit");
  if (!kinds.includes(kind)) faults.push('kind is "counter", "gauge" or "histogram"');
  if (typeof help !== "string" || help === "") faults.push("help is a sentence");
  if (kind === "counter" && !name.endsWith("_total")) faults.push("the name of a counter ends in _total");
  if (unit !== undefined && !name.replace(/_total$/, "").endsWith(`_${unit}`))
    faults.push(`the name ends in its unit, _${unit}`);
  for (const label of labels) {
    if (!namePattern.test(label) || label.startsWith("__")) faults.push(`${label} is no name of a label`);
    if (label === "le" || label === "host") faults.push(`the label ${label} is the server's own`);
  }
  if (new Set(labels).size !== labels.length) faults.push("a label is named twice");
  if (kind === "histogram" && !isAscending(buckets))
    faults.push("buckets are numbers, each greater than the one before");
  if (kind !== "histogram" && buckets !== undefined) faults.push("only a histogram has buckets");
  return faults;
}

function isAscending(bounds: readonly number[] | undefined): boolean {
  if (!Array.isArray(bounds) || bounds.length === 0) return false;
  return bounds.every((bound, at) => Number.isFinite(bound) && (at === 0 || bound > (bounds[at - 1] as number)));
}
