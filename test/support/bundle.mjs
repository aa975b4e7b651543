/**
 * Bundles each module of modhost into one file for hosts that run inside a test process. They load
 * the modules again and again, and a start takes a quarter less time this way. The rest of such a
 * host is the source code that the tests import, and its threads and sandboxes run `dist/`. The
 * files are made once and stored until the sources change. A process compiles the file of a module
 * once, and evaluates it again each time a host loads the module.
 */
import { createHash } from "node:crypto";
import {
  chmodSync,
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
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { digestOf } from "../../config/build/fresh.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
/** The folder is inside `node_modules`, so that the bundles find the packages that they import. */
const home = join(root, "node_modules/.cache/bundles");

const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const doors = Object.entries(exports).flatMap(([name, { source }]) => (source === undefined ? [] : [[name, source]]));

const entryFiles = new Set(doors.map(([, source]) => source.replace("./", "")));

const dist = pathToFileURL(join(root, "dist/"));

/** The programs that a host starts in a sandbox. */
const ofSandboxes = ["core/isolation/process_entry.ts", "core/sandbox/launcher.ts"];

/** Modules that a host loads by their name. */
const modules = globSync("modules/*/{index,mod_*}.ts", { cwd: root }).filter((file) => !entryFiles.has(file));

const DAY_MS = 86_400_000;

/** Makes the bundles unless they exist. Returns the file that a test process has to load first. */
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
    // Tests start programs as other users.
    chmodSync(made, 0o755);
    renameSync(made, folder);
  } catch (error) {
    rmSync(made, { recursive: true, force: true });
    // Another run may have been faster.
    if (!existsSync(folder)) throw error;
  }
  return hook;
}

/** Removes old bundles. Bundles of the last day stay, because another run may still use them. */
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
  const common = { absWorkingDir: root, outbase: root, entryPoints: modules, outdir: folder };
  await build({
    ...common,
    bundle: true,
    format: "cjs",
    // The file of a module is compiled once, and its value is a function that evaluates it again.
    banner: { js: "module.exports = (module, importMeta) => {" },
    footer: { js: "};" },
    define: { "import.meta.resolve": "importMeta.resolve" },
    logOverride: { "empty-import-meta": "error" },
    outExtension: { ".js": ".cjs" },
    platform: "node",
    target: "node24",
    packages: "external",
    conditions: ["source"],
    keepNames: true,
    legalComments: "none",
    logLevel: "silent",
    plugins: [
      { name: "others", setup: leaveOthers },
      { name: "source-urls", setup: keepSourceUrls },
    ],
  });
  const { metafile } = await build({ ...common, format: "esm", metafile: true, write: false });
  for (const { entryPoint, exports: names } of Object.values(metafile.outputs))
    writeFileSync(join(folder, entryPoint.replace(/\.ts$/, ".mjs")), evaluation(entryPoint, names));
  writeFileSync(join(folder, "tests.cjs"), hookOf(modules, [...parts, ...alone]));
}

/** Makes the file that a host imports with a version: it evaluates the module once more. */
const evaluation = (source, names) => `import { createRequire } from "node:module";
const evaluated = { exports: {} };
createRequire(import.meta.url)("./${basename(source, ".ts")}.cjs")(evaluated, import.meta);
${names.map((name, at) => `const _${at} = evaluated.exports[${JSON.stringify(name)}]; export { _${at} as ${name} };`).join("\n")}
`;

/**
 * Leaves files outside the module unbundled, and those that modhost exports: each of them is
 * evaluated once, whoever imports it.
 */
function leaveOthers({ onResolve }) {
  onResolve({ filter: /^\.\.?\// }, ({ path, importer }) => {
    const file = resolve(dirname(importer), path);
    const [own] = relative(join(root, "modules"), importer).split(sep);
    if (importer === "" || file.startsWith(join(root, "modules", own) + sep)) return undefined;
    return { path: file, external: true };
  });
  onResolve({ filter: /^modhost(?:\/|$)/ }, ({ path }) => ({
    path: join(root, exports[path.replace("modhost", ".")].source),
    external: true,
  }));
}

/** The address of the source: files next to it are found there, wherever the bundle is. */
const sourceUrl = (file) => JSON.stringify(pathToFileURL(file).href);

function keepSourceUrls({ onLoad }) {
  onLoad({ filter: /\.ts$/ }, ({ path }) => {
    const text = readFileSync(path, "utf8");
    if (!text.includes("import.meta.url")) return undefined;
    return { contents: text.replaceAll("import.meta.url", sourceUrl(path)), loader: "ts" };
  });
}

/**
 * Makes the hook that loads what is built instead of its source: all of it in a thread. In the main
 * thread it applies to modules where a host loads them, because a host adds a version to the
 * address, and to the programs of sandboxes. A sandbox has no compile cache, so that it starts in a
 * third of the time.
 */
const hookOf = (files, ofThreads) => `const { registerHooks } = require("node:module");
const { isMainThread } = require("node:worker_threads");
const { pathToFileURL } = require("node:url");

const folder = pathToFileURL(__dirname + "/");
const bundles = new Map(isMainThread ? ${JSON.stringify(madeOf(files, ".mjs"))} : []);
const built = new Map(isMainThread ? ${JSON.stringify(builtOf(ofSandboxes))} : ${JSON.stringify(builtOf(ofThreads))});

registerHooks({
  resolve(specifier, context, next) {
    const resolved = next(specifier, context);
    const [url, version] = resolved.url.split("?");
    const file = built.get(url) ?? (version === undefined ? undefined : bundles.get(url));
    if (file === undefined) return resolved;
    const { href } = new URL(file, folder);
    return { ...resolved, url: version === undefined ? href : \`\${href}?\${version}\`, format: "module" };
  },
});
`;

const builtOf = (files) => madeOf(files, ".js").map(([source, file]) => [source, new URL(file, dist).href]);

const madeOf = (files, extension) =>
  files.map((file) => [pathToFileURL(join(root, file)).href, file.replaceAll(sep, "/").replace(/\.ts$/, extension)]);
