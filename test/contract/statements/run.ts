/**
 * `npm run contract [-- --isolated]`: prints every statement of the contract with its tests and
 * their results. Exits with 1 if a test fails, if a statement has no test, or if the page and the
 * tests disagree. With `--isolated` the modules of the tests run in workers; statements that do not
 * apply to them are printed with the reason.
 */
import { run } from "node:test";
import { parseArgs } from "node:util";
import { notIsolated } from "#test/support/isolated_modules.ts";
import { contractFiles, disagreements, isId, readStatements, readTitles } from "./statements.ts";

interface Outcome {
  passed: number;
  failed: number;
}

const { values } = parseArgs({ options: { isolated: { type: "boolean", default: false } } });
if (values.isolated) process.env.MODHOST_TEST_ISOLATED = "HTTP/1.1,HTTPS/1.1,HTTP/2";

const statements = await readStatements();
const problems = disagreements(statements, await readTitles());
const outcomes = new Map<string, Outcome>();

const events = run({ files: [...contractFiles], execArgv: ["--conditions=source"], concurrency: 2 });
for await (const { type, data } of events) {
  if (type !== "test:pass" && type !== "test:fail") continue;
  const [id = ""] = data.name.split(" ");
  const failed = type === "test:fail";
  if (isId(id)) {
    const outcome = outcomes.get(id) ?? { passed: 0, failed: 0 };
    outcomes.set(id, outcome);
    if (data.skip !== undefined || data.todo !== undefined) problems.push(`${data.name}: skipped`);
    else if (failed) outcome.failed += 1;
    else outcome.passed += 1;
  }
  // A suite that fails only because of its tests is not listed, because the tests are.
  if (failed && data.details.error.failureType !== "subtestsFailed")
    problems.push(`${data.name}: ${firstLine(data.details.error)}`);
}

for (const { id, text } of statements) {
  const reason = values.isolated ? notIsolated[id] : undefined;
  if (reason !== undefined) {
    console.log(`left  ${id.padEnd(5)}        ${text} (${reason})`);
    continue;
  }
  const { passed, failed } = outcomes.get(id) ?? { passed: 0, failed: 0 };
  if (passed + failed === 0) problems.push(`${id}: none of its tests was run`);
  console.log(
    `${failed > 0 || passed === 0 ? "FAIL" : "pass"}  ${id.padEnd(5)} ${`${passed}/${passed + failed}`.padStart(5)}  ${text}`,
  );
}
const total = [...outcomes.values()].reduce(
  (sum, { passed, failed }) => ({ passed: sum.passed + passed, failed: sum.failed + failed }),
  {
    passed: 0,
    failed: 0,
  },
);
console.log(
  `\n${statements.length} statements, ${total.passed + total.failed} tests, ${total.passed} passed, ${total.failed} failed`,
);
for (const problem of problems) console.log(`FAILED ${problem}`);
process.exitCode = problems.length === 0 && total.failed === 0 ? 0 : 1;

function firstLine(error: Error): string {
  const cause = error.cause instanceof Error ? error.cause.message : error.message;
  return cause.split("\n", 3).join(" ");
}
