import assert from "node:assert/strict";
import { test } from "node:test";
import { noSharedStore } from "#test/support/engines/shared_store.ts";
import { launcher } from "#test/support/launchers.ts";
import { BenchReport } from "./report.ts";
import { benchScale } from "./scale.ts";

test("the benchmark of several hosts on one store has a row for each of them", { skip: noSharedStore }, async () => {
  const printed: string[] = [];
  const print = (line: string) => void printed.push(...line.split("\n"));
  const options = { rounds: 1, size: 1, hosts: 1, line: 0, blocks: 200, files: 10, calls: 4 };
  await benchScale({ ...options, program: { launcher } }, new BenchReport(print));
  // Rows with a number after the name.
  const rows = printed.flatMap((line) => /^\| ([^|]+) \| \d/.exec(line)?.[1] ?? []);
  const both = ["its own store", "1 host"];
  assert.deepEqual(rows, [
    ...[...both, "hash, append and PUT"],
    ...[...both, ...both, ...both],
    ...["1 host", "GET"],
    ...[...both, ...both],
    ...["a new host", "started again"],
  ]);
  assert.doesNotMatch(printed.join("\n"), /NaN|undefined|Infinity/);
});
