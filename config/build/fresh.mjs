/**
 * Builds `dist/` unless it was built from the current sources:
 * `node config/build/fresh.mjs [--declarations]`. `npm ci`, `npm start` and the tests call it, so
 * that nobody runs a program that is older than its sources. The flag also requires the
 * declarations. They take most of the time of a build, and only compilers of modules need them.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const builder = fileURLToPath(new URL("build.mjs", import.meta.url));

/** The build writes this file into `dist/`; the package leaves it out. */
export const RECORD = ".built.json";

const FOLDERS = ["config", "core", "modules"];
const SETTINGS = ["package.json", "package-lock.json", "tsconfig.json", "config/build/tsconfig.build.json"];

/**
 * Returns a digest of everything that a build reads. It covers contents and not times, because
 * tools that copy files may preserve old times.
 */
export function digestOf(folder) {
  const hash = createHash("sha256");
  for (const file of [...SETTINGS, ...FOLDERS.flatMap((name) => sourcesIn(folder, name))])
    hash
      .update(`${file}\0`)
      .update(readFileSync(join(folder, file)))
      .update("\0");
  return hash.digest("hex");
}

function sourcesIn(folder, name) {
  return readdirSync(join(folder, name), { recursive: true })
    .filter((file) => /\.(?:[mc]?[jt]s|css)$/.test(file))
    .sort()
    .map((file) => join(name, file));
}

/** Returns whether `dist/` was built from the current sources. */
export function isFresh(folder, { declarations = false } = {}) {
  const file = join(folder, "dist", RECORD);
  if (!existsSync(file)) return false;
  const built = JSON.parse(readFileSync(file, "utf8"));
  return built.digest === digestOf(folder) && (built.declarations || !declarations);
}

/** Builds the `dist/` of this clone if necessary. */
export function freshen({ declarations = false } = {}) {
  if (isFresh(root, { declarations })) return;
  const flags = declarations ? ["--noCheck"] : ["--program"];
  execFileSync(process.execPath, [builder, ...flags], { cwd: root, stdio: ["ignore", 2, 2] });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  // Without the development packages, or with an old Node, the launcher reports what is missing
  // when somebody starts it.
  const canBuild = existsSync(join(root, "node_modules/esbuild")) && Number.parseInt(process.versions.node, 10) >= 24;
  if (canBuild) freshen({ declarations: process.argv.includes("--declarations") });
  else console.error("modhost is not built. Run npm ci without --omit=dev to install what the build needs.");
}
