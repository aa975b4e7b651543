/**
 * Makes `dist/`, which npm gets: the program in one file, see `parts.mjs`; the declarations; the pages. Arguments go to the
 * compiler.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, globSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildParts } from "./parts.mjs";

const root = fileURLToPath(new URL("../", import.meta.url));
const dist = join(root, "dist");

rmSync(dist, { recursive: true, force: true });
for (const pages of globSync("modules/*/pages", { cwd: root }))
  cpSync(join(root, pages), join(dist, pages), { recursive: true });
const tsc = ["node_modules/typescript-native/bin/tsc", "-p", "tsconfig.build.json", ...process.argv.slice(2)];
const declared = once(spawn(process.execPath, tsc, { cwd: root, stdio: "inherit" }), "exit");
writeFileSync(join(dist, "LICENSES"), licensesOf(await buildParts(dist)));
const [code] = await declared;
process.exit(code ?? 1);

/** Of the packages of others of which the built files contain parts. */
function licensesOf(inputs) {
  const folders = inputs.map((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0]);
  const byText = new Map();
  for (const folder of [...new Set(folders)].filter((each) => each !== undefined).sort()) {
    const { name, version, license } = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"));
    const files = readdirSync(join(root, folder)).filter((file) => /^(licen[cs]e|copying|notice)\b/i.test(file));
    const text = files.map((file) => readFileSync(join(root, folder, file), "utf8").trim()).join("\n\n") || license;
    byText.set(text, [...(byText.get(text) ?? []), `${name} ${version}`]);
  }
  const line = "-".repeat(80);
  const parted = [...byText].map(([text, names]) => `${names.join(", ")}\n\n${text}\n`);
  return `Parts of these packages are contained in the files beside this one.\n\n${parted.join(`\n${line}\n\n`)}`;
}
