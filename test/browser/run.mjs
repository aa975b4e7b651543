/**
 * `npm run test:browser`: tests the dashboard and the content of the gateway in headless Chromium
 * (the program that CHROMIUM names, or /usr/bin/chromium). `-- --long`: with files of 1 GiB and ten
 * minutes of load. `-- NAME`: only files whose names contain it.
 */
import { spawnSync } from "node:child_process";
import { globSync } from "node:fs";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const given = process.argv.slice(2);
const wanted = given.filter((each) => !each.startsWith("--"));
const files = globSync("*/*.browser.ts", { cwd: here })
  .filter((file) => wanted.length === 0 || wanted.some((name) => file.includes(name)))
  .map((file) => `${here}${file}`);
let status = 0;
// Runs one file at a time: each has a server and a browser of its own.
for (const file of files) {
  const rest = given.filter((each) => each.startsWith("--"));
  status ||= spawnSync(process.execPath, ["--conditions=source", file, ...rest], { stdio: "inherit" }).status ?? 1;
}
process.exitCode = status;
