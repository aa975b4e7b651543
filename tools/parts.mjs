/**
 * The program in one file; for each source that is found by its path a file of exports that takes them from there; threads and
 * processes of their own. `build.mjs` makes the package of them, and tests start them in place of the sources.
 */
import { createHash } from "node:crypto";
import { globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import { aliases, patches } from "./patches.mjs";

const root = fileURLToPath(new URL("../", import.meta.url));
const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
/** What the package exports, and the sources of that. */
const doors = Object.entries(exports).flatMap(([name, { source }]) => (source === undefined ? [] : [[name, source]]));

/** Sources that are looked for by their paths or imported by others: each is evaluated when it is asked for. */
export const parts = sourcesOf([
  ...doors.map(([, source]) => source),
  "core/cli/main.ts",
  "core/cli/index.ts",
  "core/isolation/entry.ts",
  "modules/*/{index,mod_*}.ts",
  "modules/*/cli/*.ts",
]);

/** Threads and processes that need little of the program. */
export const alone = sourcesOf([
  "core/cli/watchdog_thread.ts",
  "modules/mod_node/mount/mount_child.ts",
  "modules/mod_node/storage/lmdb/patches/probe.ts",
]);

/**
 * Packages that are not made a part of the program: those with machine code or with files beside their code, what modules may
 * share with the host, and large ones that are needed late or never.
 */
const external = [
  "@chainsafe/libp2p-quic",
  "@libp2p/tls",
  "@libp2p/upnp-nat",
  "@opentelemetry/api",
  "@peculiar/x509",
  "classic-level",
  "lmdb",
  "postgres",
  "serve-index",
  "undici",
];

const common = {
  absWorkingDir: root,
  bundle: true,
  platform: "node",
  target: "node24",
  // Not that of the sources, which packages of others may know as well.
  conditions: [],
  external,
  alias: Object.fromEntries(doors.map(([name, source]) => [join("modhost", name), join(root, source)])),
  // So that V8 holds a byte for each character.
  charset: "ascii",
  minifyWhitespace: true,
  minifySyntax: true,
  // Stacks tell lines.
  lineLimit: 160,
  legalComments: "none",
  logLevel: "warning",
  metafile: true,
};

/**
 * Writes them into a folder, which is below the packages that they need, or beside them. Gives the files of which they are made.
 * @param {string} folder absolute
 * @param {(file: string) => string} [placeOf] where code is that asks for its own address, by its absolute file: an expression;
 *   default: in the file of this folder that is made of it
 * @returns {Promise<string[]>} relative to the root of the project
 */
export async function buildParts(folder, placeOf = besideProgram) {
  const inputs = await Promise.all([buildProgram(folder, placeOf), buildAlone(folder)]);
  for (const source of parts) await writePart(folder, source);
  return inputs.flat();
}

function sourcesOf(patterns) {
  return [...new Set(globSync(patterns, { cwd: root }).map((file) => join(file).replaceAll(sep, "/")))].sort();
}

/** Gives the inputs. */
async function buildProgram(folder, placeOf) {
  const table = parts.map((source) => `${JSON.stringify(nameOf(source))}: () => require("./${source}"),`);
  const { outputFiles, metafile } = await build({
    ...common,
    alias: { ...common.alias, ...aliases },
    external: external.filter((name) => name !== "lmdb").concat("msgpackr-extract"),
    stdin: { contents: `parts = {\n${table.join("\n")}\n};`, resolveDir: root, sourcefile: "parts.js" },
    format: "cjs",
    banner: { js: "(function (require, importMeta, importLate) { let parts;" },
    footer: { js: "return parts; })" },
    define: { "import.meta.resolve": "importMeta.resolve" },
    plugins: [{ name: "places", setup: (build) => keepPlaces(build, placeOf) }, ...patches],
    write: false,
  });
  const text = outputFiles[0].text;
  const left = /(?:await |return |=> ?|[=(,?:|&])import\(.{0,40}/.exec(text);
  if (left !== null) throw new Error(`The program would import by itself: ${left[0]}`);
  writeFileSync(join(folder, "program.js"), text);
  const digest = createHash("sha256").update(text).digest("hex").slice(0, 16);
  const loader = readFileSync(join(root, "tools/program.mjs"), "utf8");
  writeFileSync(join(folder, "program.mjs"), loader.replace("DIGEST", digest));
  return Object.keys(metafile.inputs);
}

async function buildAlone(folder) {
  const banner = 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);';
  const of = { entryPoints: alone, outbase: root, outdir: folder, format: "esm", banner: { js: banner } };
  const { metafile } = await build({ ...common, ...of });
  return Object.keys(metafile.inputs);
}

/** What a source finds beside itself it finds beside its part, wherever its code is; and a script imports by its loader. */
function keepPlaces({ onLoad }, placeOf) {
  onLoad({ filter: /\.ts$|[\\/]lilconfig[\\/].*\.js$/ }, ({ path }) => {
    const text = readFileSync(path, "utf8");
    const late = new RegExp(`(await |return |[?:=] |=> )import\\((?!"(?!${external.join("|")}))`, "g");
    const contents = text
      .replaceAll(/createRequire\(import\.meta\.url\)\("@koa\/router"\)/g, 'require("@koa/router")')
      .replaceAll("import.meta.url", placeOf(path))
      .replaceAll(late, "$1importLate(");
    return contents === text ? undefined : { contents, loader: path.endsWith(".ts") ? "ts" : "js" };
  });
}

function besideProgram(file) {
  const place = JSON.stringify(`./${nameOf(relative(root, file))}.js`);
  return `new URL(${place}, importMeta.url).href`;
}

function nameOf(source) {
  return source.replaceAll(sep, "/").replace(/\.ts$/, "");
}

async function writePart(folder, source) {
  const name = nameOf(source);
  const file = join(folder, `${name}.js`);
  const up = relative(dirname(file), folder).replaceAll(sep, "/");
  const ask = `part(${JSON.stringify(name)})`;
  const names = await namesIn(folder, source);
  const lines = [`import { part } from "${up}/program.mjs";`, ""];
  lines.push(names.length === 0 ? `${ask};` : `const own = ${ask};`);
  for (const each of names)
    lines.push(each === "default" ? "export default own.default;" : `export const ${each} = own.${each};`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${lines.join("\n")}\n`);
}

/** What a part exports; nothing of one that is there to run. */
async function namesIn(folder, source) {
  if (!/^export /m.test(readFileSync(join(root, source), "utf8"))) return [];
  const { part } = await import(pathToFileURL(join(folder, "program.mjs")).href);
  return Object.keys(part(nameOf(source))).sort();
}
