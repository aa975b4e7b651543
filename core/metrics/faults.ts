import type { MetricDeclaration, MetricDeclarations } from "../types.ts";

const namePattern = /^[a-zA-Z_][a-zA-Z0-9_]*$/;
const kinds: readonly unknown[] = ["counter", "gauge", "histogram"];

/** Returns the problems of metric declarations, in words; empty if there are none. */
export function metricFaults(metrics: MetricDeclarations): string[] {
  if (typeof metrics !== "object" || metrics === null) return ["metrics must be an object from name to declaration"];
  return Object.entries(metrics).flatMap(([name, declaration]) =>
    faultsOf(name, declaration).map((fault) => `${name}: ${fault}`),
  );
}

function faultsOf(name: string, declaration: MetricDeclaration): string[] {
  const faults: string[] = [];
  const { kind, help, unit, labels = [], buckets } = declaration ?? {};
  if (!namePattern.test(name))
    faults.push("a name may contain only letters, digits and underscores, and must not begin with a digit");
  if (!kinds.includes(kind)) faults.push('kind must be "counter", "gauge" or "histogram"');
  if (typeof help !== "string" || help === "") faults.push("help must be a text");
  if (kind === "counter" && !name.endsWith("_total")) faults.push("the name of a counter must end with _total");
  if (unit !== undefined && !name.replace(/_total$/, "").endsWith(`_${unit}`))
    faults.push(`the name must end with its unit, _${unit}`);
  for (const label of labels) {
    if (!namePattern.test(label) || label.startsWith("__")) faults.push(`${label} is not a valid label name`);
    if (label === "le" || label === "host") faults.push(`the label ${label} is reserved for the server`);
  }
  if (new Set(labels).size !== labels.length) faults.push("a label is listed twice");
  if (kind === "histogram" && !isAscending(buckets)) faults.push("buckets must be a list of ascending numbers");
  if (kind !== "histogram" && buckets !== undefined) faults.push("only a histogram can have buckets");
  return faults;
}

function isAscending(bounds: readonly number[] | undefined): boolean {
  if (!Array.isArray(bounds) || bounds.length === 0) return false;
  return bounds.every((bound, at) => Number.isFinite(bound) && (at === 0 || bound > (bounds[at - 1] as number)));
}
