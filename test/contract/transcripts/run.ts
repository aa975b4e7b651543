/**
 * `npm run transcripts -- [--only REGEX] [--store shared] [--verbose] [--spawn COMMAND]`: the recorded conversations with the reference,
 * played against two servers. `--spawn` plays them against another server, with `{port}` and `{dir}` filled in, and
 * without the explanations.
 */
import { parseArgs } from "node:util";
import { readExplanations } from "./explained.ts";
import { type Judged, judge, unused, type Verdict, verdicts } from "./judge.ts";
import { replay } from "./replay.ts";
import { withServers } from "./servers.ts";

const { values: given } = parseArgs({
  options: {
    only: { type: "string" },
    store: { type: "string" },
    verbose: { type: "boolean" },
    spawn: { type: "string" },
  },
});
const { only, store, spawn: command, verbose = false } = given;

const explanations = command === undefined ? await readExplanations() : [];
const report =
  command === undefined
    ? await withServers((first, second) => replay({ urls: [first.url, second.url] }, only), store)
    : await replay({ spawn: command }, only);

const judged = judge(report, explanations);
const stale = unused(report, explanations);
const shown: readonly Verdict[] = verbose ? ["failed", "explained", "skipped"] : ["failed"];
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

/** A row for each topic, and one for all. */
function tableOf(all: readonly Judged[]): string {
  const head: Record<Verdict, string> = {
    passed: "passed",
    explained: "explained",
    failed: "failed",
    skipped: "skipped",
  };
  const topics = [...new Set(all.map(({ topic }) => topic))];
  const row = (name: string, own: readonly Judged[]) =>
    verdicts.reduce(
      (line, wanted) =>
        line + String(own.filter(({ verdict }) => verdict === wanted).length).padStart(head[wanted].length + 2),
      name.padEnd(12),
    );
  return [
    verdicts.reduce((line, verdict) => `${line}  ${head[verdict]}`, " ".repeat(12)),
    ...topics.map((topic) =>
      row(
        topic,
        all.filter((one) => one.topic === topic),
      ),
    ),
    row("all", all),
  ].join("\n");
}
