/**
 * Runs the tests: `node test/run.mjs [FILE...] [OPTION...]`. Without files it takes every `test/**` file that ends in
 * `.test.ts`. Options are handed to Node's runner (`--test-name-pattern`, `--test-only`, ...).
 */
import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

if (Number.parseInt(process.versions.node, 10) < 24) {
  console.error(`The tests need Node 24, this is ${process.versions.node}: start them with npm run test:unit`);
  process.exit(1);
}

const root = fileURLToPath(new URL("..", import.meta.url));
const options = process.argv.slice(2).filter((argument) => argument.startsWith("-"));
const named = process.argv.slice(2).filter((argument) => !argument.startsWith("-"));
const files = named.length > 0 ? named : testFiles();

const reporter = process.stdout.isTTY ? "spec" : fileURLToPath(new URL("support/reporter.mjs", import.meta.url));
const runner = spawn(
  process.execPath,
  [
    "--conditions=source",
    "--test",
    // A test that hangs fails, instead of holding up the run.
    "--test-timeout=60000",
    `--test-concurrency=${Math.max(2, availableParallelism())}`,
    `--test-reporter=${reporter}`,
    "--test-reporter-destination=stdout",
    ...options,
    ...files,
  ],
  { cwd: root, stdio: "inherit" },
);
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => runner.kill(signal));
runner.on("exit", (code, signal) => {
  process.exitCode = signal === null ? (code ?? 1) : 1;
});

function testFiles() {
  const names = readdirSync(join(root, "test"), { recursive: true });
  return names
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => join("test", name))
    .sort();
}
