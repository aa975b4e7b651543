/**
 * Runs a part of the contract tests with sandboxed modules, over HTTP/1.1. To run all of them:
 * `npm run contract -- --sandboxed`.
 */
import { test } from "node:test";
import { sandboxUnavailable } from "#core/sandbox/index.ts";

process.env.MODHOST_TEST_ISOLATED = "HTTP/1.1";
process.env.MODHOST_TEST_SANDBOXED = "1";
const reason = sandboxUnavailable();
if (reason === undefined) {
  for (const file of ["request", "failures"]) await import(`../statements/${file}.test.ts`);
} else test("a sandboxed module meets the contract", { skip: reason }, () => undefined);
