/**
 * Makes `dist/`, which npm gets: the program in one file; for each source that is found by its path a file of exports that
 * takes them from there; threads and processes of their own; the declarations; the pages. Arguments go to the compiler.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { cpSync, globSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("../", import.meta.url));
const dist = join(root, "dist");
const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
/** What the package exports, and the sources of that. */
const doors = Object.entries(exports).flatMap(([name, { source }]) => (source === undefined ? [] : [[name, source]]));

/** Sources that are looked for by their paths or imported by others: each is evaluated when it is asked for. */
const parts = sourcesOf([
  ...doors.map(([, source]) => source),
  "core/cli/main.ts",
  "core/cli/index.ts",
  "core/isolation/entry.ts",
  "modules/*/{index,mod_*}.ts",
  "modules/*/cli/*.ts",
]);

/** Threads and processes that need little of the program. */
const alone = sourcesOf([
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

rmSync(dist, { recursive: true, force: true });
for (const pages of globSync("modules/*/pages", { cwd: root }))
  cpSync(join(root, pages), join(dist, pages), { recursive: true });
const tsc = ["node_modules/typescript-native/bin/tsc", "-p", "tsconfig.build.json", ...process.argv.slice(2)];
const declared = once(spawn(process.execPath, tsc, { cwd: root, stdio: "inherit" }), "exit");
const bundles = await Promise.all([buildProgram(), buildAlone()]);
writeFileSync(join(dist, "LICENSES"), licensesOf(bundles));
for (const source of parts) await writePart(source);
const [code] = await declared;
process.exit(code ?? 1);

function sourcesOf(patterns) {
  return [...new Set(globSync(patterns, { cwd: root }).map((file) => join(file).replaceAll(sep, "/")))].sort();
}

/** Gives the inputs. */
async function buildProgram() {
  const table = parts.map((source) => `${JSON.stringify(nameOf(source))}: () => require("./${source}"),`);
  const { outputFiles, metafile } = await build({
    ...common,
    stdin: { contents: `parts = {\n${table.join("\n")}\n};`, resolveDir: root, sourcefile: "parts.js" },
    format: "cjs",
    banner: { js: "(function (require, importMeta, importLate) { let parts;" },
    footer: { js: "return parts; })" },
    define: { "import.meta.resolve": "importMeta.resolve" },
    plugins: [
      { name: "places", setup: keepPlaces },
      { name: "late types", setup: loadTypesLate },
    ],
    write: false,
  });
  const text = outputFiles[0].text;
  const left = /(?:await |return |=> ?|[=(,?:|&])import\(.{0,40}/.exec(text);
  if (left !== null) throw new Error(`The program would import by itself: ${left[0]}`);
  writeFileSync(join(dist, "program.js"), text);
  const digest = createHash("sha256").update(text).digest("hex").slice(0, 16);
  const loader = readFileSync(join(root, "tools/program.mjs"), "utf8");
  writeFileSync(join(dist, "program.mjs"), loader.replace("DIGEST", digest));
  return Object.keys(metafile.inputs);
}

async function buildAlone() {
  const banner = 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);';
  const of = { entryPoints: alone, outbase: root, outdir: dist, format: "esm", banner: { js: banner } };
  const { metafile } = await build({ ...common, ...of });
  return Object.keys(metafile.inputs);
}

/** What a source finds beside itself it finds beside its part, wherever its code is; and a script imports by its loader. */
function keepPlaces({ onLoad }) {
  onLoad({ filter: /\.ts$|[\\/]lilconfig[\\/].*\.js$/ }, ({ path }) => {
    const text = readFileSync(path, "utf8");
    const place = JSON.stringify(`./${nameOf(relative(root, path))}.js`);
    const late = new RegExp(`(await |return |[?:=] |=> )import\\((?!"(?!${external.join("|")}))`, "g");
    const contents = text
      .replaceAll(/createRequire\(import\.meta\.url\)\("@koa\/router"\)/g, 'require("@koa/router")')
      .replaceAll("import.meta.url", `new URL(${place}, importMeta.url).href`)
      .replaceAll(late, "$1importLate(");
    return contents === text ? undefined : { contents, loader: path.endsWith(".ts") ? "ts" : "js" };
  });
}

/** Koa asks for names of media types, of which there are thousands, when something is asked of it: few answers need them. */
function loadTypesLate({ onLoad }) {
  onLoad({ filter: /[\\/]koa[\\/]lib[\\/](request|response)\.js$/ }, ({ path }) => {
    const found = /^const (\w+) = (require\('(?:accepts|type-is|mime-types)'\)(?:\.\w+)?);?$/gm;
    const text = readFileSync(path, "utf8");
    if (text.match(found)?.length !== 2) throw new Error(`${path} is not as it was: see which packages it loads`);
    return { contents: text.replaceAll(found, "const $1 = (...given) => $2(...given);"), loader: "js" };
  });
}

function nameOf(source) {
  return source.replaceAll(sep, "/").replace(/\.ts$/, "");
}

async function writePart(source) {
  const name = nameOf(source);
  const file = join(dist, `${name}.js`);
  const up = relative(dirname(file), dist).replaceAll(sep, "/");
  const ask = `part(${JSON.stringify(name)})`;
  const names = await namesIn(source);
  const lines = [`import { part } from "${up}/program.mjs";`, ""];
  lines.push(names.length === 0 ? `${ask};` : `const own = ${ask};`);
  for (const each of names)
    lines.push(each === "default" ? "export default own.default;" : `export const ${each} = own.${each};`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${lines.join("\n")}\n`);
}

/** What a part exports; nothing of one that is there to run. */
async function namesIn(source) {
  if (!/^export /m.test(readFileSync(join(root, source), "utf8"))) return [];
  const { part } = await import(pathToFileURL(join(dist, "program.mjs")).href);
  return Object.keys(part(nameOf(source))).sort();
}

/** Of the packages of others of which the built files contain parts. */
function licensesOf(inputs) {
  const folders = inputs.flat().map((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0]);
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
