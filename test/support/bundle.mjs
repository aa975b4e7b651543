/**
 * The program that tests start as a child, made as that of the package is: one script with most of what it needs, see
 * `tools/parts.mjs`. A start takes half of the CPU time that it takes from a thousand files. It is made of the sources as they
 * are, once, and kept until they change; to itself it is where they are. Where it cannot be made, sources are run. A bundled
 * module that is loaded again runs no file again.
 *
 * Hosts within a process of tests have their modules each in one file, for they load them anew: a start takes a quarter
 * less. The rest of the host is the one that tests import.
 */
import { createHash } from "node:crypto";
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
/** Below the packages, where the bundle finds those that it needs. */
const home = join(root, "node_modules/.cache/bundles");

const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const doors = Object.entries(exports).flatMap(([name, { source }]) => (source === undefined ? [] : [[name, source]]));

const doorFiles = new Set(doors.map(([, source]) => source.replace("./", "")));

/** What a host loads by its name. */
const modules = globSync("modules/*/{index,mod_*}.ts", { cwd: root }).filter((file) => !doorFiles.has(file));

const DAY_MS = 86_400_000;

/**
 * Makes the bundle unless it is there. Gives what a child is to require first, and what a process of tests is, whose threads
 * run the bundle, too; undefined where none can be made.
 */
export async function bundle() {
  const sources = globSync("{core,modules}/**/*.ts", { cwd: root }).sort();
  const hash = createHash("sha256").update(readFileSync(fileURLToPath(import.meta.url)));
  for (const file of ["package.json", "tools/parts.mjs", "tools/patches.mjs", "tools/program.mjs", ...sources])
    hash.update(file).update(readFileSync(join(root, file)));
  const folder = join(home, hash.digest("hex").slice(0, 16));
  const hooks = { program: join(folder, "program.cjs"), tests: join(folder, "tests.cjs") };
  if (existsSync(folder)) return hooks;
  try {
    mkdirSync(home, { recursive: true });
    removeOld();
    const made = mkdtempSync(join(home, "new-"));
    await buildInto(made);
    renameSync(made, folder);
  } catch (error) {
    // Another run may have been faster.
    if (existsSync(folder)) return hooks;
    console.error(`The programs of tests are run from their sources: ${error.message}`);
    return undefined;
  }
  return hooks;
}

/** Those of other sources, which another run may be using. */
function removeOld() {
  for (const name of readdirSync(home)) {
    const folder = join(home, name);
    const isOld = (statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? 0) < Date.now() - DAY_MS;
    if (isOld) rmSync(folder, { recursive: true, force: true });
  }
}

async function buildInto(folder) {
  const { build } = await import("esbuild");
  const { alone, buildParts, parts } = await import("../../tools/parts.mjs");
  await buildParts(folder, placeOf);
  await build({
    absWorkingDir: root,
    outbase: root,
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node24",
    packages: "external",
    conditions: ["source"],
    keepNames: true,
    legalComments: "none",
    logLevel: "silent",
    entryPoints: modules,
    outdir: join(folder, "alone"),
    plugins: [
      { name: "others", setup: leaveOthers },
      { name: "places", setup: keepPlaces },
    ],
  });
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  writeFileSync(join(folder, "program.cjs"), hookOf([...parts, ...alone], ""));
  writeFileSync(join(folder, "modules.cjs"), hookOf(modules, "alone/"));
  writeFileSync(join(folder, "tests.cjs"), TESTS);
}

/** What is not of the module itself stays where it is: it is evaluated once, whoever imports it. */
function leaveOthers({ onResolve }) {
  onResolve({ filter: /^\.\.?\// }, ({ path, importer }) => {
    const file = resolve(dirname(importer), path);
    const [own] = relative(join(root, "modules"), importer).split(sep);
    if (importer === "" || file.startsWith(join(root, "modules", own) + sep)) return undefined;
    return { path: pathToFileURL(file).href, external: true };
  });
}

/** What a source finds beside itself it finds there, wherever its code is. */
const placeOf = (file) => JSON.stringify(pathToFileURL(file).href);

function keepPlaces({ onLoad }) {
  onLoad({ filter: /\.ts$/ }, ({ path }) => {
    const text = readFileSync(path, "utf8");
    if (!text.includes("import.meta.url")) return undefined;
    return { contents: text.replaceAll("import.meta.url", placeOf(path)), loader: "ts" };
  });
}

/** An address of a source leads to what was made of it; of the modules alone, where a host loads it. */
const hookOf = (files, below) => `const { registerHooks } = require("node:module");
const { pathToFileURL } = require("node:url");

const folder = pathToFileURL(__dirname + "/${below}");
const made = new Map(${JSON.stringify(
  files.map((file) => [pathToFileURL(join(root, file)).href, file.replaceAll(sep, "/").replace(/\.ts$/, ".js")]),
)});

registerHooks({
  resolve(specifier, context, next) {
    const resolved = next(specifier, context);
    const [url, version] = resolved.url.split("?");
    const file = made.get(url);
    if (file === undefined${below === "" ? "" : " || version === undefined"}) return resolved;
    const place = new URL(file, folder).href;
    return { ...resolved, url: version === undefined ? place : \`\${place}?\${version}\`, format: "module" };
  },
});
`;

const TESTS = `require(require("node:worker_threads").isMainThread ? "./modules.cjs" : "./program.cjs");
`;
