/**
 * Builds `dist/`, which npm packs and which a clone runs: the bundled program (see `parts.mjs`),
 * the dashboard's pages, the type declarations, and the licences and names of the bundled packages.
 * `--program` leaves out the declarations. Other arguments are passed to the compiler.
 */
import { chmodSync, cpSync, existsSync, globSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bomOf, licensesOf, packagesOf } from "./contents.mjs";
import { buildDeclarations } from "./declarations.mjs";
import { digestOf, RECORD } from "./fresh.mjs";
import { buildParts } from "./parts.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const dist = join(root, "dist");
const flags = process.argv.slice(2).filter((flag) => flag !== "--program");
const declarations = !process.argv.includes("--program");

// A file that changes during the build makes the result stale.
const digest = digestOf(root);
// Programs that run from `dist/` always find it complete: the build makes a new folder and swaps it
// in. The new folder is inside the project, so that it finds the packages that the program loads.
const made = mkdtempSync(join(root, "dist-"));
const replaced = `${made}-old`;
try {
  for (const pages of globSync("modules/*/pages", { cwd: root }))
    cpSync(join(root, pages), join(made, pages), { recursive: true });
  const inputs = await Promise.all([buildParts(made), ...(declarations ? [buildDeclarations(made, flags)] : [])]);
  const packages = packagesOf(inputs.flat());
  writeFileSync(join(made, "LICENSES"), licensesOf(packages));
  writeFileSync(join(made, "sbom.cdx.json"), bomOf(packages));
  writeFileSync(join(made, RECORD), JSON.stringify({ digest, declarations }));
  // Other users may run the program.
  chmodSync(made, 0o755);
  if (existsSync(dist)) renameSync(dist, replaced);
  renameSync(made, dist);
} finally {
  for (const folder of [made, replaced]) rmSync(folder, { recursive: true, force: true });
}
