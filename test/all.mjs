/**
 * `npm test`: runs the checks of types, style and layers at the same time as the tests, which wait
 * for half of their time.
 */
import { fileURLToPath } from "node:url";
import { runChecksAndTests } from "./support/checks_and_tests.mjs";

// Turns off the garbage collection of the compilers, which are written in Go: it takes a third of
// their CPU time, and they end before they need it.
process.env.GOGC ??= "off";
process.env.GOMEMLIMIT ??= "2GiB";

const runner = fileURLToPath(new URL("run.mjs", import.meta.url));
process.exitCode = await runChecksAndTests(["--run", "checks"], [runner, ...process.argv.slice(2)]);
