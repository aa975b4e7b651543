/**
 * Bundles the program into three scripts: the host's, the node's, and the one that installs
 * packages. A server reads the last two when it needs them. A source that is loaded by its path
 * becomes a small file that re-exports its part of a script. Threads and small processes have
 * scripts of their own.
 */
import { createHash } from "node:crypto";
import { globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("../../", import.meta.url));
const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
/** The names that the package exports, each with its source file. */
const entryPoints = Object.entries(exports).flatMap(([name, { source }]) =>
  source === undefined ? [] : [[name, source]],
);

/**
 * Sources that are loaded by their paths or imported by others. Each is evaluated at its first use.
 */
export const parts = sourcesOf([
  ...entryPoints.map(([, source]) => source),
  "core/cli/main.ts",
  "core/cli/index.ts",
  "core/isolation/{thread,process}_entry.ts",
  "modules/*/{index,mod_*}.ts",
  "modules/*/cli/*.ts",
  "modules/mod_packages/engine.ts",
]);

/** Folders of bundled modules that import the node. */
const nodeFolders = new Set(
  globSync("modules/*/**/*.ts", { cwd: root })
    .filter((file) => /^(?:import|export) (?!type).*"modhost\/node"|^\} from "modhost\/node"/m.test(read(file)))
    .map((file) => file.split(sep)[1])
    .concat("mod_node"),
);
const isOfNode = (source) => nodeFolders.has(/^modules\/([^/]+)/.exec(source)?.[1]);
const nodeParts = parts.filter(isOfNode);

/** The engine that installs packages, with the libraries of npm. It is large and rarely used. */
const ENGINE = "modules/mod_packages/engine.ts";
const isOfPackages = (source) => source.startsWith("modules/mod_packages/");
const hostParts = parts.filter((source) => !isOfNode(source) && source !== ENGINE);

/** Threads and processes that need little of the program. */
export const alone = sourcesOf([
  "core/cli/watchdog_thread.ts",
  "core/sandbox/launcher.ts",
  "modules/mod_node/mount/mount_child.ts",
  "modules/mod_node/storage/lmdb/patches/probe.ts",
]);

/**
 * Packages that are not bundled: those with machine code or with files next to their code, those
 * that modules may share with the host, and large ones that are needed late or never.
 */
const external = ["@opentelemetry/api", "classic-level", "lmdb", "postgres", "serve-index", "undici"];

/** Packages that libraries load only if they are installed. */
const tried = ["iconv-lite", "kerberos", "msgpackr-extract", "node-gyp"];

/** Files that are bundled instead of those that packages name. */
const aliases = {
  // Another part of formidable uses a library of ciphers for random names, which modhost does not
  // need.
  formidable: "formidable/src/parsers/index.js",
  // This build of lmdb locates its own file by `__filename`. From there it loads its machine code,
  // which stays in its package.
  lmdb: join(root, "node_modules/lmdb/dist/index.cjs"),
};

/** The files of the scripts. `program.mjs` has the same table. */
const scripts = { host: "program.js", node: "program_node.js", packages: "program_packages.js" };

const common = {
  absWorkingDir: root,
  bundle: true,
  platform: "node",
  target: "node24",
  // Without the condition `source`, which other packages may use as well.
  conditions: [],
  external,
  alias: Object.fromEntries(entryPoints.map(([name, source]) => [join("modhost", name), join(root, source)])),
  // With ASCII only, V8 stores one byte per character.
  charset: "ascii",
  minifyWhitespace: true,
  minifySyntax: true,
  // Short lines make the positions in stack traces useful.
  lineLimit: 160,
  legalComments: "none",
  logLevel: "warning",
  metafile: true,
};

/**
 * Writes the program into a folder, which must be inside the project so that its packages are
 * found.
 * @param {string} folder absolute path
 * @returns {Promise<string[]>} the bundled files, relative to the root of the project
 */
export async function buildParts(folder) {
  const alone = buildAlone(folder);
  const digests = {};
  const groups = { node: nodeParts.map(nameOf), packages: [nameOf(ENGINE)] };
  const add = async (group, of, ...plugins) => {
    const { inputs, digest } = await buildScript(folder, scripts[group], of, ...plugins);
    digests[group] = digest;
    const facts = JSON.stringify({ digests, groups });
    writeFileSync(join(folder, "program.mjs"), read("config/build/program.mjs").replace('"FACTS"', facts));
    return inputs;
  };
  const positions = { name: "positions", setup: keepPositions(["modhost/node"]) };
  const host = await add("host", hostParts, positions, lateEngine);
  const ofNode = host.filter((file) => file.startsWith("modules/") && isOfNode(file));
  if (ofNode.length > 0) throw new Error(`The host's script would contain the node: ${ofNode[0]}`);
  const inputs = [...host];
  for (const [group, of, isOwn] of [
    ["node", nodeParts, isOfNode],
    ["packages", [ENGINE], isOfPackages],
  ]) {
    const shared = await sharedEntryPoints(folder, isOwn);
    inputs.push(...(await add(group, of, { name: "positions", setup: keepPositions([]) }, shared)));
  }
  for (const source of parts) await writePart(folder, source);
  return [...inputs, ...(await alone)];
}

function sourcesOf(patterns) {
  return [...new Set(globSync(patterns, { cwd: root }).map((file) => join(file).replaceAll(sep, "/")))].sort();
}

/**
 * Writes a script whose value is a table of parts. Returns its inputs, and a digest of its text.
 */
async function buildScript(folder, name, of, ...plugins) {
  const table = of.map((source) => `${JSON.stringify(nameOf(source))}: () => require("./${source}"),`);
  const { outputFiles, metafile } = await build({
    ...common,
    alias: { ...common.alias, ...aliases },
    external: external.filter((name) => name !== "lmdb").concat(tried),
    stdin: { contents: `parts = {\n${table.join("\n")}\n};`, resolveDir: root, sourcefile: "parts.js" },
    format: "cjs",
    banner: { js: "(function (require, importMeta, importLate, part, installed) { let parts;" },
    footer: { js: "return parts; })" },
    define: {
      "import.meta.openCompiled": "importMeta.openCompiled",
      "import.meta.resolve": "importMeta.resolve",
      "import.meta.url": "importMeta.url",
      __filename: "installed.lmdb",
      __dirname: "installed.folder",
    },
    plugins: [...plugins, lateTypes, lateCurves],
    write: false,
  });
  const text = outputFiles[0].text;
  const left = /(?:await |return |=> ?|[=(,?:|&])import\(.{0,40}/.exec(text);
  if (left !== null) throw new Error(`The program would import a package without its loader: ${left[0]}`);
  writeFileSync(join(folder, name), text);
  return { inputs: inputsOf(metafile), digest: createHash("sha256").update(text).digest("hex").slice(0, 16) };
}

/**
 * Returns a plugin that bundles a module in the place of a package's file. The module is to load
 * the file, by its path, when one of its exports is used.
 */
function loadedLate(name, filter, contentsOf) {
  const setup = ({ onResolve, onLoad, resolve }) => {
    onResolve({ filter }, async ({ path, resolveDir, kind, pluginData }) => {
      if (pluginData === name) return undefined;
      const found = await resolve(path, { resolveDir, kind, pluginData: name });
      return { path: found.path, namespace: name };
    });
    onLoad({ filter: /.*/, namespace: name }, ({ path }) => ({ contents: contentsOf(path), resolveDir: root }));
  };
  return { name: `late ${name}`, setup };
}

const requireOf = (path) => `require(${JSON.stringify(path)})`;

/**
 * Koa uses a table of thousands of media types, but few responses need it. It is loaded at the
 * first call of one of these functions, which saves a tenth of the start's time and 4 MiB.
 */
const lateTypes = loadedLate("types", /^mime-types$/, (path) =>
  ["charset", "contentType", "extension", "lookup"]
    .map((name) => `exports.${name} = (value) => ${requireOf(path)}.${name}(value);`)
    .join("\n"),
);

/**
 * libp2p imports elliptic curves for keys that few peers have: Node.js itself computes the usual
 * ones. A curve is loaded when it is first used, which saves a twentieth of the start of a node.
 */
const lateCurves = loadedLate("curves", /^@noble\/curves\/(ed25519|secp256k1)\.js$/, (path) => {
  const names = path.endsWith("ed25519.js") ? ["ed25519", "x25519"] : ["secp256k1"];
  const getters = names.map((name) => `${name}: { enumerable: true, get: () => ${requireOf(path)}.${name} }`);
  return `Object.defineProperties(exports, { ${getters.join(", ")} });`;
});

/** The module of packages loads its engine, which is in another script. */
const lateEngine = {
  name: "late engine",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^\.\/engine\.ts$/ }, ({ resolveDir }) =>
      nameOf(relative(root, resolve(resolveDir, "engine.ts"))) === nameOf(ENGINE)
        ? { path: ENGINE, namespace: "engine" }
        : undefined,
    );
    onLoad({ filter: /.*/, namespace: "engine" }, () => ({
      contents: `module.exports = part(${JSON.stringify(nameOf(ENGINE))});`,
    }));
  },
};

/**
 * Modules in the other scripts import parts of the host. Those parts are in the host's script
 * already, and must not be evaluated a second time.
 */
async function sharedEntryPoints(folder, isOwn) {
  const own = new Map(
    entryPoints
      .filter(([, source]) => !isOfNode(source.slice(2)))
      .map(([, source]) => [join(root, source), source.slice(2)]),
  );
  const names = new Map();
  for (const [file, source] of own) names.set(file, await namesIn(folder, source));
  const setup = ({ onResolve, onLoad }) => {
    onResolve({ filter: /^\.|^#|^\// }, ({ path, importer, resolveDir }) => {
      const file = path.startsWith("#") ? undefined : resolve(resolveDir, path);
      if (file === undefined || importer.includes("node_modules") || !file.endsWith(".ts")) return undefined;
      if (own.has(file)) return { path: file, namespace: "shared" };
      if (isOwn(nameOf(relative(root, file)))) return undefined;
      throw new Error(`${importer} imports ${path}, which the host does not export`);
    });
    onLoad({ filter: /.*/, namespace: "shared" }, ({ path }) => ({
      contents: exportsOf(`part(${JSON.stringify(nameOf(own.get(path)))})`, names.get(path)),
    }));
  };
  return { name: "shared", setup };
}

async function buildAlone(folder) {
  const banner = 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);';
  const of = { entryPoints: alone, outbase: root, outdir: folder, format: "esm", banner: { js: banner } };
  const { metafile } = await build({ ...common, ...of });
  return inputsOf(metafile);
}

/** Returns the files of which at least a part is in the output. */
function inputsOf({ outputs }) {
  const inputs = Object.values(outputs).flatMap(({ inputs }) => Object.entries(inputs));
  return inputs
    .filter(([path, { bytesInOutput }]) => bytesInOutput > 0 && !/^(?:curves|engine|shared|types):/.test(path))
    .map(([path]) => path);
}

/**
 * Lets a source find the files next to it although its code is in a script, and lets a script
 * import through the loader.
 */
const keepPositions =
  (others) =>
  ({ onLoad }) => {
    onLoad(
      { filter: /\.ts$|[\\/]lilconfig[\\/].*\.js$|[\\/](?:arborist|proxy-agent-negotiate)[\\/].*\.js$/ },
      ({ path }) => {
        const text = readFileSync(path, "utf8");
        const late = new RegExp(
          `(await |return |[?:=] |=> )import\\((?!"(?!${[...external, ...others].join("|")}))`,
          "g",
        );
        const contents = text
          .replaceAll(/createRequire\(import\.meta\.url\)(?=\("(?!modhost\/))/g, "require")
          .replaceAll("import.meta.url", outputUrl(path))
          .replaceAll(late, "$1importLate(");
        return contents === text ? undefined : { contents, loader: path.endsWith(".ts") ? "ts" : "js" };
      },
    );
  };

function outputUrl(file) {
  const path = JSON.stringify(`./${nameOf(relative(root, file))}.js`);
  return `new URL(${path}, importMeta.url).href`;
}

function nameOf(source) {
  return source.replaceAll(sep, "/").replace(/\.ts$/, "");
}

async function writePart(folder, source) {
  const name = nameOf(source);
  const file = join(folder, `${name}.js`);
  const up = relative(dirname(file), folder).replaceAll(sep, "/");
  const text = exportsOf(`part(${JSON.stringify(name)})`, await namesIn(folder, source));
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `import { part } from "${up}/program.mjs";\n\n${text}`);
}

/** Returns a module with these exports, which it reads from the value of an expression. */
function exportsOf(value, names) {
  const lines = names.map((name) =>
    name === "default" ? "export default own.default;" : `export const ${name} = own.${name};`,
  );
  return `${[names.length === 0 ? `${value};` : `const own = ${value};`, ...lines].join("\n")}\n`;
}

/** Returns the names that a part exports; none for a part that only runs. */
async function namesIn(folder, source) {
  if (!/^export /m.test(read(source))) return [];
  const { href } = pathToFileURL(join(folder, "program.mjs"));
  // The loader is written again with each script, so the query avoids the cached one.
  const { part } = await import(`${href}?${isOfNode(source)}${source === ENGINE}`);
  return Object.keys(part(nameOf(source))).sort();
}

function read(file) {
  return readFileSync(join(root, file), "utf8");
}
