/**
 * Hosts within a process of tests have their bundled modules each in one file, because they load
 * them again and again: a start takes a quarter less. The rest of the host is the one that tests
 * import. The threads that such hosts start run `dist/`. The files are made once and kept until the
 * sources change. A bundled module that is loaded again runs no file again.
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
import { digestOf } from "../../config/build/fresh.mjs";

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
 * Makes the files unless they exist. Returns the file that a process of tests is to require first.
 */
export async function bundle() {
  const own = readFileSync(fileURLToPath(import.meta.url));
  const hash = createHash("sha256").update(own).update(digestOf(root));
  const folder = join(home, hash.digest("hex").slice(0, 16));
  const hook = join(folder, "tests.cjs");
  if (existsSync(folder)) return hook;
  mkdirSync(home, { recursive: true });
  removeOld();
  const made = mkdtempSync(join(home, "new-"));
  try {
    await buildInto(made);
    renameSync(made, folder);
  } catch (error) {
    rmSync(made, { recursive: true, force: true });
    // Another run may have been faster.
    if (!existsSync(folder)) throw error;
  }
  return hook;
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
  const { alone, parts } = await import("../../config/build/parts.mjs");
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
    outdir: folder,
    plugins: [
      { name: "others", setup: leaveOthers },
      { name: "places", setup: keepPlaces },
    ],
  });
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  writeFileSync(join(folder, "tests.cjs"), hookOf(modules, [...parts, ...alone]));
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

/**
 * The address of a source leads to what was made of it: in a thread always, else where a host loads
 * a module, which adds a version to the address.
 */
const hookOf = (files, ofThreads) => `const { registerHooks } = require("node:module");
const { isMainThread } = require("node:worker_threads");
const { pathToFileURL } = require("node:url");

const folder = isMainThread ? pathToFileURL(__dirname + "/") : ${JSON.stringify(pathToFileURL(join(root, "dist/")).href)};
const made = new Map(isMainThread ? ${JSON.stringify(madeOf(files))} : ${JSON.stringify(madeOf(ofThreads))});

registerHooks({
  resolve(specifier, context, next) {
    const resolved = next(specifier, context);
    const [url, version] = resolved.url.split("?");
    const file = made.get(url);
    if (file === undefined || (isMainThread && version === undefined)) return resolved;
    const place = new URL(file, folder).href;
    return { ...resolved, url: version === undefined ? place : \`\${place}?\${version}\`, format: "module" };
  },
});
`;

const madeOf = (files) =>
  files.map((file) => [pathToFileURL(join(root, file)).href, file.replaceAll(sep, "/").replace(/\.ts$/, ".js")]);
