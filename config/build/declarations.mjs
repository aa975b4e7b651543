/**
 * Bundles the type declarations of the package's exports: one file for each, and files that they
 * share. They contain the declarations of bundled packages, so that types need nothing that is not
 * installed with the package.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { rollup } from "rollup";
import { dts } from "rollup-plugin-dts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const { dependencies, optionalDependencies, exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const names = Object.values(exports).flatMap(({ types }) => types?.replace(/^\.\/dist\/|\.d\.ts$/g, "") ?? []);

/**
 * Writes the declarations into a folder.
 * @param {string} folder absolute path
 * @param {string[]} flags arguments for the compiler
 * @returns {Promise<string[]>} the files that they are made from, relative to the root of the
 * project
 */
export async function buildDeclarations(folder, flags) {
  // This folder is inside the project, so that the compiler finds the packages.
  const emitted = mkdtempSync(join(root, "declarations-"));
  try {
    const tsc = [
      "node_modules/typescript-native/bin/tsc",
      "-p",
      "config/build/tsconfig.build.json",
      "--outDir",
      emitted,
      ...flags,
    ];
    const [code] = await once(spawn(process.execPath, tsc, { cwd: root, stdio: "inherit" }), "exit");
    if (code !== 0) throw new Error("The sources do not compile");
    return await roll(emitted, folder);
  } finally {
    rmSync(emitted, { recursive: true, force: true });
  }
}

async function roll(emitted, folder) {
  const bundle = await rollup({
    input: Object.fromEntries(names.map((name) => [name, join(emitted, `${name}.d.ts`)])),
    // Packages that are installed with modhost have declarations of their own.
    external: (id) => isBuiltin(id) || Object.hasOwn({ ...dependencies, ...optionalDependencies }, id),
    plugins: [withoutKoa(emitted), fitting, dts({ respectExternal: true, compilerOptions: { customConditions: [] } })],
    onwarn: ({ message }) => {
      throw new Error(`The declarations cannot be joined: ${message}`);
    },
  });
  const { output } = await bundle.write({
    dir: folder,
    format: "es",
    entryFileNames: "[name].d.ts",
    chunkFileNames: ({ name }) => `declarations/${name.replace(/\.d$/, "")}.d.ts`,
  });
  return output.flatMap(({ modules = {} }) => Object.keys(modules)).map((file) => relative(root, file));
}

/**
 * The bundler cannot merge Koa's declarations, because they are namespaces. Its types are replaced
 * by those of middleware that the host supports.
 */
function withoutKoa(emitted) {
  const types = JSON.stringify(join(emitted, "core/types/middleware.js"));
  const koa = `export { MiddlewareContext as Context, MiddlewareApplication as default } from ${types};`;
  return {
    name: "koa",
    resolveId: (id) => (id === "koa" ? join(emitted, "koa.d.ts") : undefined),
    load: (id) => (id === join(emitted, "koa.d.ts") ? koa : undefined),
  };
}

/**
 * Types that the declarations of some packages take from a browser's globals, as `@types/node`
 * defines them.
 */
const browserTypes = {
  AddEventListenerOptions: 'Parameters<EventTarget["addEventListener"]>[2]',
  "CustomEventInit<Detail>": "ConstructorParameters<typeof CustomEvent<Detail>>[1]",
  EventInit: "ConstructorParameters<typeof Event>[1]",
  JsonWebKey: 'import("node:crypto").webcrypto.JsonWebKey',
};
const browserType = new RegExp(`\\b(?:${Object.keys(browserTypes).join("|")})(?!\\w)`, "g");

/** Edits declarations of packages, so that they can be bundled and need no types of browsers. */
const fitting = {
  name: "fitting",
  transform(text, file) {
    if (!file.includes("node_modules")) return undefined;
    // A type parameter of this class has the same name as a type that the bundler renames from
    // `API.Version` to `Version`.
    const isCid = file.replaceAll(sep, "/").endsWith("/multiformats/dist/src/cid.d.ts");
    const fitted = isCid ? text.replaceAll(/(?<!API\.)\bVersion\b/g, "OfVersion") : text;
    return fitted.replaceAll(browserType, (name) => browserTypes[name]);
  },
};
