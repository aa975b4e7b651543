/** A strict parser of Prometheus' text format 0.0.4 and of OpenMetrics 1.0. */
import assert from "node:assert/strict";

export interface ReadFamily {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly unit: string | undefined;
  readonly samples: ReadSample[];
}

export interface ReadSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const name = "[a-zA-Z_:][a-zA-Z0-9_:]*";
const number = /^(?:[+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:e[+-]?\d+)?|[+-]Inf|NaN)$/i;
const samplePattern = new RegExp(`^(${name})(?:\\{(.*)\\})? (\\S+)$`);
const labelPattern = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,(?=.)|$)/gy;

/** Parses a whole text. A line that breaks the format fails the test. */
export function readExposition(text: string, format: "prometheus" | "openmetrics"): Map<string, ReadFamily> {
  const families = new Map<string, ReadFamily>();
  const isOpen = format === "openmetrics";
  assert.ok(text.endsWith(isOpen ? "# EOF\n" : "\n"), "the text ends as the format requires");
  const lines = text.split("\n").slice(0, isOpen ? -2 : -1);
  let current: { name: string; help?: string; type?: string; unit?: string; samples: ReadSample[] } | undefined;
  const seen = new Set<string>();
  const close = () => {
    if (current === undefined) return;
    const { name: family, help, type, unit, samples } = current;
    assert.ok(type !== undefined && help !== undefined, `${family} has a type and a help text`);
    assert.ok(!families.has(family), `${family} occurs once, with all its samples together`);
    if (type === "histogram") checkHistogram(family, samples);
    families.set(family, { name: family, help, type, unit, samples });
  };
  for (const line of lines) {
    const [, kind, family, rest] = /^# (HELP|TYPE|UNIT) (\S+) (.*)$/.exec(line) ?? [];
    if (kind !== undefined && family !== undefined && rest !== undefined) {
      assert.match(family, new RegExp(`^${name}$`), line);
      if (current?.name !== family) {
        close();
        current = { name: family, samples: [] };
      }
      assert.equal(current.samples.length, 0, `${line}: precedes the samples`);
      if (kind === "HELP") current.help = rest;
      if (kind === "TYPE") current.type = rest;
      if (kind === "UNIT") {
        assert.ok(isOpen && family.endsWith(`_${rest}`), line);
        current.unit = rest;
      }
      continue;
    }
    const [, sample, labelText, value] = samplePattern.exec(line) ?? [];
    assert.ok(sample !== undefined && value !== undefined && number.test(value), `${JSON.stringify(line)} is a sample`);
    assert.ok(current !== undefined, line);
    const suffixes: Record<string, string[]> = {
      counter: isOpen ? ["_total"] : [""],
      gauge: [""],
      histogram: ["_bucket", "_sum", "_count"],
    };
    const allowed = suffixes[current.type ?? ""]?.map((suffix) => `${current?.name}${suffix}`);
    assert.ok(allowed?.includes(sample), `${line} belongs to ${current.name}`);
    const labels = labelsOf(labelText, line);
    const key = `${sample}${JSON.stringify(Object.entries(labels).sort())}`;
    assert.ok(!seen.has(key), `${line} comes once`);
    seen.add(key);
    current.samples.push({ name: sample, labels, value: numberFrom(value) });
  }
  close();
  return families;
}

function labelsOf(text: string | undefined, line: string): Record<string, string> {
  const labels: Record<string, string> = {};
  if (text === undefined) return labels;
  let end = 0;
  for (const match of text.matchAll(labelPattern)) {
    const [whole, label = "", value = ""] = match;
    assert.ok(!Object.hasOwn(labels, label), `${line}: a label occurs once`);
    labels[label] = value.replace(/\\(.)/g, (_, each: string) => (each === "n" ? "\n" : each));
    end = match.index + whole.length;
  }
  assert.equal(end, text.length, `${line}: labels`);
  return labels;
}

const numberFrom = (text: string) =>
  text === "+Inf" ? Number.POSITIVE_INFINITY : text === "-Inf" ? Number.NEGATIVE_INFINITY : Number(text);

function checkHistogram(family: string, samples: readonly ReadSample[]): void {
  const seriesOf = ({ labels: { le: _, ...rest } }: ReadSample) => JSON.stringify(rest);
  for (const [series, own] of Map.groupBy(samples, seriesOf)) {
    const buckets = own.filter(({ name }) => name.endsWith("_bucket"));
    const bounds = buckets.map(({ labels }) => numberFrom(labels.le ?? ""));
    assert.deepEqual(
      bounds,
      bounds.toSorted((a, b) => a - b),
      `${family} ${series}: bounds ascend`,
    );
    assert.equal(bounds.at(-1), Number.POSITIVE_INFINITY, `${family} ${series}: the last bound is infinite`);
    const counts = buckets.map(({ value }) => value);
    assert.deepEqual(
      counts,
      counts.toSorted((a, b) => a - b),
      `${family} ${series}: counts are cumulative`,
    );
    const count = own.find(({ name }) => name.endsWith("_count"))?.value;
    assert.equal(counts.at(-1), count, `${family} ${series}: the last bucket counts all observations`);
    assert.ok(
      own.some(({ name }) => name.endsWith("_sum")),
      `${family} ${series} has a sum`,
    );
  }
}
