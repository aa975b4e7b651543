import assert from "node:assert/strict";
import { test } from "node:test";
import { sandboxUnavailable } from "#core/sandbox/index.ts";
import { neighbours } from "./neighbour.ts";

/** The long form measures every act: `npm run test:neighbour`. */
test("a sandboxed module that floods its log fails no request of its neighbour", {
  skip: sandboxUnavailable() ?? false,
}, async () => {
  const reports = [];
  for await (const report of neighbours({ seconds: 1, only: ["floods its log"] })) reports.push(report);
  assert.deepEqual(
    reports.map(({ act, failures }) => [act, failures]),
    [
      ["nothing", []],
      ["floods its log", []],
    ],
  );
});
