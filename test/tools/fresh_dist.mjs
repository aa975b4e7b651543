/**
 * Builds the clone's `dist/` where sources have changed since it was built here last: what a package that `modhost new`
 * made in a clone runs before its tests. A build takes far longer than those.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const clone = fileURLToPath(new URL("../../", import.meta.url));

/** When the last build began, for which `dist/` stands; it is written after a build that has succeeded. */
const stampOf = (folder) => join(folder, "node_modules/.cache/dist-built");

/** True when `dist/` is missing, or a source is younger than the build. A file that was removed changes its folder. */
export function isStale(folder) {
  const stamp = stampOf(folder);
  if (!existsSync(join(folder, "dist")) || !existsSync(stamp)) return true;
  const began = Number(readFileSync(stamp, "utf8"));
  const sources = ["core", "modules", "tools"].flatMap((name) => {
    const top = join(folder, name);
    return [top, ...readdirSync(top, { recursive: true }).map((path) => join(top, path))];
  });
  const settings = ["package.json", "tsconfig.json", "tsconfig.build.json"].map((name) => join(folder, name));
  return [...sources, ...settings].some((path) => statSync(path).mtimeMs >= began);
}

/** The time of a file that is written now may be this much behind the clock, milliseconds: the system counts it in ticks. */
const TICK_MS = 20;

/** Calls `build` where that is needed. */
export function freshen(folder, build) {
  if (!isStale(folder)) return;
  const began = Date.now() - TICK_MS;
  rmSync(stampOf(folder), { force: true });
  build();
  mkdirSync(dirname(stampOf(folder)), { recursive: true });
  writeFileSync(stampOf(folder), `${began}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  freshen(clone, () => execFileSync("npm", ["--silent", "run", "build"], { cwd: clone, stdio: "inherit" }));
}
