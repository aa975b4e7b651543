/**
 * `npm run test:clients [-- --only TEXT]`: real client libraries against started servers, at full
 * size and with every method; those of the gateway are installed first, below `gateway/libraries`.
 * `--only` runs those whose names have it.
 */
import { parseArgs } from "node:util";
import { drives } from "./drives.ts";
import { gatewayDrives } from "./gateway/drives.ts";
import { full } from "./libraries.ts";

const { values: given } = parseArgs({ options: { only: { type: "string", default: "" } } });
let failed = 0;
let passed = 0;
for (const { name, run } of [...drives(full), ...gatewayDrives]) {
  if (!name.includes(given.only)) continue;
  try {
    for await (const line of run()) console.log(`${name}: ${line}`);
    passed += 1;
  } catch (error) {
    failed += 1;
    console.log(`${name}: ${(error as Error).stack}`);
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
