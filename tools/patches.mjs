/**
 * What is changed in libraries on their way into the program, each for the time of a start. The build fails where a library is not of the
 * version that a change was made for, or its text is not as it was; the tests run what is built.
 */
import { readFileSync } from "node:fs";
import { join, sep } from "node:path";
import { fileURLToPath } from "node:url";

const packages = fileURLToPath(new URL("../node_modules/", import.meta.url));

/** Koa asks for names of media types, of which there are thousands, when something is asked of it: few answers need them. */
const typesLate = changed("late media types", "koa", "3.3.0", "lib/(request|response).js", (text) => {
  const found = /^const (\w+) = (require\('(?:accepts|type-is|mime-types)'\)(?:\.\w+)?);?$/gm;
  return text.match(found)?.length === 2 ? text.replaceAll(found, "const $1 = (...given) => $2(...given);") : text;
});

/** Keys of libp2p may be of curves that few have; Node itself has the one that most have. To make them is a fiftieth of a start. */
const curvesLate = changed(
  "late curves",
  "@libp2p/crypto",
  "5.1.23",
  "dist/src/keys/(ed25519/index|secp256k1/(index|utils)).js",
  (text) => {
    const found = /^import \{ (\w+) as (\w+) \} from '(@noble\/curves\/\w+\.js)';$/m;
    const [line, name, local, from] = found.exec(text) ?? [];
    if (line === undefined) return text;
    const late = `const ${local} = () => require("${from}").${name};`;
    return text.replaceAll(new RegExp(`\\b${local}\\.`, "g"), `${local}().`).replace(line, late);
  },
);

/**
 * Pino asks which files have called it, for names of transports, of which there are none here. To answer, V8 looks for the line
 * ends of the whole script.
 */
const noCallers = changed("no callers", "pino", "10.4.0", "lib/caller.js", () => "module.exports = () => [];");

/** Depd notes the line of each caller for warnings that are hardly ever given, and asks for it when it gives one: see `noCallers`. */
const linesLate = changed("late lines", "depd", ["2.0.0", "1.1.2"], "index.js", (text) => {
  const late = [
    ["line = callSite.getLineNumber()", "line = { get: () => callSite.getLineNumber() }"],
    ["colm = callSite.getColumnNumber()", "colm = { get: () => callSite.getColumnNumber() }"],
    ["[file, line, colm]", "Object.defineProperties([file], { 1: line, 2: colm })"],
  ];
  const isAsItWas = late.every(([asked]) => text.split(asked).length === 2);
  return isAsItWas ? late.reduce((made, [asked, given]) => made.replace(asked, given), text) : text;
});

/**
 * Lmdb becomes a part of the program, with the packages that it needs, but for its machine code, which it looks for in its own folder.
 * Loading them took a twentieth of a start.
 */
const lmdbWithin = changed("lmdb within", "lmdb", "3.5.6", "dist/index.cjs", (text) => {
  const found = 'new URL("dist/index.cjs", importMeta.resolve("lmdb"))';
  const place = `const __filename = process.getBuiltinModule("node:url").fileURLToPath(${found});`;
  return text.includes("'file:' + __filename") ? `${place}\n${text}` : text;
});

export const patches = [typesLate, curvesLate, noCallers, linesLate, lmdbWithin];

/** For packages of which another file is taken than the one that they name. */
export const aliases = {
  lmdb: fileIn("lmdb", "3.5.6", "dist/index.cjs"),
  // Its form, which is not used, makes random names by a library of ciphers.
  formidable: fileIn("formidable", "3.5.4", "src/parsers/index.js"),
};

/** A plugin that changes all files of a library whose paths in it match; one at least is in the program. */
function changed(name, library, version, path, change) {
  const filter = new RegExp(`/node_modules/${library}/${path.replaceAll(".", "\\.")}$`.replaceAll("/", "[\\\\/]"));
  let isApplied = false;
  const setup = ({ onLoad, onEnd }) => {
    onLoad({ filter }, ({ path: file }) => {
      isApplied = true;
      const within = file.slice(0, file.lastIndexOf(`node_modules${sep}`));
      requireVersion(join(within, "node_modules", library), version);
      const text = readFileSync(file, "utf8");
      const contents = change(text);
      if (contents === text) throw new Error(`${file} is not as it was: see "${name}" in tools/patches.mjs`);
      return { contents, loader: "js" };
    });
    onEnd(() => {
      if (!isApplied)
        throw new Error(`No file of ${library} is "${path}" any more: see "${name}" in tools/patches.mjs`);
    });
  };
  return { name, setup };
}

function fileIn(library, version, path) {
  requireVersion(join(packages, library), version);
  return join(packages, library, path);
}

function requireVersion(folder, expected) {
  const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  if ([expected].flat().includes(version)) return;
  throw new Error(
    `${name} ${version} is not what tools/patches.mjs was made for (${expected}): see whether it still fits`,
  );
}
