/**
 * `npm test`: types, style and layers beside the tests, which leave the processor time while they
 * wait.
 */
import { fileURLToPath } from "node:url";
import { beside } from "./support/beside.mjs";

// The compilers, which are written in Go, end before they would need what they collect: a third of
// their CPU time.
process.env.GOGC ??= "off";
process.env.GOMEMLIMIT ??= "2GiB";

const runner = fileURLToPath(new URL("run.mjs", import.meta.url));
process.exitCode = await beside(["--run", "checks"], [runner, ...process.argv.slice(2)]);
