/**
 * `npm run test:clients [-- --only TEXT]`: runs real client libraries against servers that it
 * starts, with large content and with every method. Client libraries for gateways are first
 * installed from `gateway/libraries`. `--only` runs those whose names contain the text.
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
