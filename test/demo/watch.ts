/**
 * `npm run demo:watch`: measures the time from a saved file to the response of the new code with
 * `modhost run --watch`, for a module of one file and for a file that it imports. Prints the times
 * in milliseconds. The goal is 300 ms on a machine that is not busy.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { ended, project } from "./support.ts";

const SAVES = 20;
const folder = mkdtempSync(join(tmpdir(), "modhost-watch-"));
const main = (text: string) => `import { text } from "modhost";
import { part } from "./part.mjs";
export default function a(module) {
  module.depends("http");
  module.provides("http", { route: { "GET /": () => text("${text} " + part) } });
}
`;
writeFileSync(join(folder, "mod_http_a.mjs"), main("0"));
writeFileSync(join(folder, "part.mjs"), 'export const part = "0";');
const host = spawn(
  process.execPath,
  [join(project, "core/cli/launch.mjs"), "run", "--watch", "--json", "mod_http_a.mjs"],
  {
    cwd: folder,
    env: {
      ...process.env,
      MODHOST_HTTP_PORTS: "0",
      MODHOST_HTTPS_PORTS: "",
      MODHOST_ADMIN_PORT: "0",
      MODHOST_HTTP_LOG: "false",
    },
    stdio: ["ignore", "pipe", "inherit"],
  },
);
const [line] = (await once(createInterface(host.stdout), "line")) as [string];
const { port } = JSON.parse(line).ports[0];
host.stdout.resume();

async function timeUntil(file: string, text: string, wanted: string): Promise<number> {
  const begun = performance.now();
  writeFileSync(join(folder, file), text);
  for (;;) if ((await (await fetch(`http://127.0.0.1:${port}/a/`)).text()) === wanted) return performance.now() - begun;
}

const times: number[] = [];
for (let save = 1; save <= SAVES; save += 1) {
  times.push(await timeUntil("mod_http_a.mjs", main(String(save)), `${save} ${save - 1}`));
  times.push(await timeUntil("part.mjs", `export const part = "${save}";`, `${save} ${save}`));
}
const sorted = times.toSorted((one, other) => one - other);
const at = (share: number) => sorted[Math.ceil(sorted.length * share) - 1]?.toFixed(0);
console.log(`${times.length} saves: median ${at(0.5)} ms, 95 of 100 ${at(0.95)} ms, longest ${at(1)} ms`);
const code = await ended(host);
rmSync(folder, { recursive: true });
process.exitCode = code ?? 1;
