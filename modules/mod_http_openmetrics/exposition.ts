/** Formats metrics as text: Prometheus 0.0.4 and OpenMetrics 1.0. */
import type { HistogramValue, MetricDeclaration } from "../../core/types.ts";

/** All series of one metric. */
export interface Family {
  readonly name: string;
  readonly declaration: MetricDeclaration;
  readonly series: readonly Series[];
}

export interface Series {
  /** Names and values, in the order of the declaration. */
  readonly labels: readonly (readonly [string, string])[];
  readonly value: number | HistogramValue;
}

export type Format = "prometheus" | "openmetrics";

export const contentTypes: Readonly<Record<Format, string>> = {
  prometheus: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

/** Returns the format for a client: OpenMetrics if its Accept header prefers it to plain text. */
export function formatFor(accept = ""): Format {
  const weights = accept.split(",").map((part) => {
    const [type = "", ...parameters] = part.split(";").map((text) => text.trim().toLowerCase());
    const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
    return { type, weight: weight === undefined ? 1 : Number(weight) || 0 };
  });
  const best = (...types: string[]) =>
    Math.max(0, ...weights.filter(({ type }) => types.includes(type)).map(({ weight }) => weight));
  const open = best("application/openmetrics-text");
  return open > 0 && open >= best("text/plain", "text/*", "*/*") ? "openmetrics" : "prometheus";
}

/** Returns the families as one text. */
export function expose(families: readonly Family[], format: Format): string {
  const text = families.map((family) => exposeFamily(family, format)).join("");
  return format === "openmetrics" ? `${text}# EOF\n` : text;
}

function exposeFamily({ name, declaration, series }: Family, format: Format): string {
  const { kind, help, unit } = declaration;
  const isOpen = format === "openmetrics";
  // In OpenMetrics the suffix belongs to the sample and not to the family.
  const family = isOpen && kind === "counter" ? name.replace(/_total$/, "") : name;
  let text = `# HELP ${family} ${escaped(help, isOpen)}\n# TYPE ${family} ${kind}\n`;
  if (isOpen && unit !== undefined && family.endsWith(`_${unit}`)) text += `# UNIT ${family} ${unit}\n`;
  for (const { labels, value } of series) {
    text +=
      typeof value === "number"
        ? `${name}${labelText(labels)} ${numberText(value)}\n`
        : histogramText(name, declaration.buckets ?? [], labels, value, isOpen);
  }
  return text;
}

function histogramText(
  name: string,
  buckets: readonly number[],
  labels: Series["labels"],
  { counts, sum }: HistogramValue,
  isOpen: boolean,
): string {
  let text = "";
  let count = 0;
  for (const [at, bound] of [...buckets, Number.POSITIVE_INFINITY].entries()) {
    count += counts[at] ?? 0;
    text += `${name}_bucket${labelText([...labels, ["le", boundText(bound, isOpen)]])} ${count}\n`;
  }
  return `${text}${name}_sum${labelText(labels)} ${numberText(sum)}\n${name}_count${labelText(labels)} ${count}\n`;
}

/** OpenMetrics requires bucket bounds to be floating-point numbers. */
function boundText(bound: number, isOpen: boolean): string {
  return isOpen && Number.isInteger(bound) ? `${bound}.0` : numberText(bound);
}

function labelText(labels: Series["labels"]): string {
  if (labels.length === 0) return "";
  return `{${labels.map(([name, value]) => `${name}="${escaped(value, true)}"`).join(",")}}`;
}

function escaped(text: string, quotes: boolean): string {
  const plain = text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
  return quotes ? plain.replaceAll('"', '\\"') : plain;
}

function numberText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return "+Inf";
  if (value === Number.NEGATIVE_INFINITY) return "-Inf";
  return String(value);
}
