/** `npm run test:clients`: real client libraries against started servers, at full size and with every method. */
import { drives } from "./drives.ts";
import { full } from "./libraries.ts";

let failed = 0;
let passed = 0;
for (const { name, run } of drives(full)) {
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
