/**
 * `npm run transcripts -- [--level 0.43] [--only REGEX] [--store shared] [--verbose] [--left] [--spawn COMMAND]`:
 * plays the recorded conversations with the reference of a level against two servers. `--left`
 * deletes steps that pass from the list of those that are left. `--spawn` plays them against
 * another server, with `{port}` and `{dir}` filled in, and without the explanations.
 */
import { parseArgs } from "node:util";
import type { LevelName } from "#modules/mod_http_api/rpc/levels.ts";
import { readExplanations, readLeft, writeLeft } from "./explained.ts";
import { type Judged, judge, unused, type Verdict, verdicts } from "./judge.ts";
import { type ReplayedStep, replay, type Skipped } from "./replay.ts";
import { filtersOf, withServers } from "./servers.ts";

const { values: given } = parseArgs({
  options: {
    level: { type: "string", default: "0.9" },
    left: { type: "boolean" },
    only: { type: "string" },
    store: { type: "string" },
    verbose: { type: "boolean" },
    spawn: { type: "string" },
  },
});
const { only, store, spawn: command, verbose = false } = given;

const level: LevelName = given.level === "0.43" ? "0.43" : "0.9";
const explanations = command === undefined ? await readExplanations(level) : [];
const left = command === undefined ? await readLeft(level) : {};
const report: (ReplayedStep | Skipped)[] = [];
for (const filter of filtersOf(only, level)) {
  const played =
    command === undefined
      ? await withServers((first, second) => replay({ urls: [first.url, second.url] }, filter, level), { store, level })
      : await replay({ spawn: command }, filter, level);
  report.push(...played);
}

const judged = judge(report, explanations, left);
const stale = unused(report, explanations);
const shown: readonly Verdict[] = verbose ? ["failed", "explained", "left", "skipped"] : ["failed"];
for (const { name, verdict, remarks } of judged) {
  if (!shown.includes(verdict)) continue;
  console.log([`${verdict} ${name}`, ...(verbose ? remarks : remarks.slice(0, 3))].join("\n    "));
}
for (const line of stale) console.log(line);
console.log(`\n${tableOf(judged)}`);
const count = (wanted: Verdict) => judged.filter(({ verdict }) => verdict === wanted).length;
const failed = count("failed") + stale.length;
console.log(`${count("passed")} passed, ${failed} failed`);
process.exitCode = failed === 0 && judged.length > 0 ? 0 : 1;

if (given.left === true && level === "0.43") {
  const passing = new Set(
    report.flatMap((step) => ("ok" in step && step.ok ? [`${step.topic}/${step.scenario} ${step.step}`] : [])),
  );
  const still = Object.entries(left).map(([scenario, steps]) => [
    scenario,
    steps.filter((step) => !passing.has(`${scenario} ${step}`)),
  ]);
  await writeLeft(Object.fromEntries(still));
}

/** Returns a row for each topic, and one for all. */
function tableOf(all: readonly Judged[]): string {
  const head: Record<Verdict, string> = {
    passed: "passed",
    explained: "explained",
    left: "left",
    failed: "failed",
    skipped: "skipped",
  };
  const topics = [...new Set(all.map(({ topic }) => topic))];
  const row = (name: string, own: readonly Judged[]) =>
    verdicts.reduce(
      (line, wanted) =>
        line + String(own.filter(({ verdict }) => verdict === wanted).length).padStart(head[wanted].length + 2),
      name.padEnd(22),
    );
  return [
    verdicts.reduce((line, verdict) => `${line}  ${head[verdict]}`, " ".repeat(22)),
    ...topics.map((topic) =>
      row(
        topic,
        all.filter((one) => one.topic === topic),
      ),
    ),
    row("all", all),
  ].join("\n");
}
