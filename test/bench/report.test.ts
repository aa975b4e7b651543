import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { BenchReport, Comparison, pages, sectionNames, spread, withSection } from "./report.ts";

test("a cell shows the median, followed by the minimum and the maximum", () => {
  assert.equal(spread([3, 1, 2000], 0), "3 (1-2,000)");
  assert.equal(spread([0.25], 2, "s"), "0.25 s");
  assert.equal(spread([1.01, 1.04], 1, "MiB/s"), "1.0 MiB/s");
});

test("a failed round does not count, and a cell is empty if all rounds failed", () => {
  assert.equal(spread([Number.NaN, 2, 4, 3], 0), "3 (2-4)");
  assert.equal(spread([Number.NaN], 0, "s"), "");
});

test("servers are compared within each round: a rate of twice theirs is 2, and so is half of their time", () => {
  const printed: string[] = [];
  const section = new BenchReport((line) => printed.push(line)).section("host", {
    how: "2 rounds",
    versions: ["Other 1.2"],
  });
  const table = new Comparison<{ rate: number; cpu: number }>(section, [
    { title: "rate", isCompared: true },
    { title: "CPU", isCompared: true },
    { title: "rate again" },
  ]);
  const samples = new Map([
    ["ours", [rateAndTime(100, 2), rateAndTime(200, 4)]],
    ["theirs", [rateAndTime(50, 8), rateAndTime(50, 4)]],
  ]);
  table.add(
    "a work",
    [
      { digits: 0, unit: "calls/s", better: "more", of: ({ rate }) => rate },
      { digits: 1, unit: "s", of: ({ cpu }) => cpu },
      { digits: 0, of: ({ rate }) => rate },
    ],
    samples,
  );
  assert.match(printed[1] ?? "", /^2 rounds, \d+ cores \(.+\), .*Node v[\d.]+, Other 1\.2, \d+ \w+ \d{4}\.$/);
  assert.deepEqual(printed.slice(3), [
    "|  |  | rate | x | CPU | x | rate again |",
    "|---|---|---|---|---|---|---|",
    "| a work | ours | 150 (100-200) calls/s |  | 3.0 (2.0-4.0) s |  | 150 (100-200) |",
    "|  | theirs | 50 calls/s | 3.00 (2.00-4.00) | 6.0 (4.0-8.0) s | 2.50 (1.00-4.00) | 50 |",
  ]);
});

const rateAndTime = (rate: number, cpu: number) => ({ rate, cpu });

test("a section of the page is replaced, and the rest stays", () => {
  const text = "Before\n<!-- bench: a -->\nold\n<!-- end -->\nbetween\n<!-- bench: b -->\nkept\n<!-- end -->\n";
  assert.equal(withSection(text, "a", ["new", "lines"]), text.replace("old\n", "new\nlines\n\n"));
  assert.throws(() => withSection(text, "c", []), /no section "c"/);
});

test("the pages of the benchmarks contain each section that is saved exactly once", () => {
  const text = pages.map((page) => readFileSync(page, "utf8")).join("\n");
  const sections = [...text.matchAll(/<!-- bench: (.+) -->/g)].map(([, name]) => name);
  assert.deepEqual(sections.toSorted(), sectionNames.toSorted());
});
