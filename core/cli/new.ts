/**
 * `modhost new`: creates a module that serves and passes its test at once, as a package for npm or
 * as a single file.
 */
import { existsSync, readFileSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";
import { appName } from "../http/routing/app_urls.ts";
import { bundledModules, packageFolder, packageManifest, projectFolder } from "../util/package.ts";
import { type Command, UsageError } from "./command.ts";

/** The files to create in a folder, by name, and the commands to try next. */
interface Made {
  readonly folder: string;
  readonly files: Readonly<Record<string, string>>;
  readonly next: readonly string[];
}

export const newModule: Command = {
  name: "new",
  arguments: "NAME",
  help: "Create a module: the package mod_NAME/, ready for npm, or a single file with --in",
  options: {
    in: { type: "string", value: "FOLDER", help: "Create only the file mod_NAME.ts, in this folder of plugin_paths" },
    js: { type: "boolean", help: "Write JavaScript instead of TypeScript" },
  },
  async run({ args, options, output, cwd }) {
    const name = nameOf(args);
    const folder = typeof options.in === "string" ? resolve(cwd, options.in) : undefined;
    const js = options.js === true;
    const made = folder === undefined ? await packageOf(name, js, cwd) : await looseFileOf(name, js, cwd, folder);
    await mkdir(made.folder, { recursive: true });
    for (const [file, text] of Object.entries(made.files)) {
      await writeFile(join(made.folder, file), text, { flag: "wx" });
    }
    const files = Object.keys(made.files).map((file) => join(made.folder, file));
    output.show({ name, app: appName(name), files, next: made.next }, () => {
      const indented = (lines: readonly string[]) => lines.map((line) => `  ${line}`);
      const title = output.paint("bold", `Created the module ${name}:`);
      const paths = files.map((file) => relative(cwd, file));
      return [title, ...indented(paths), "", "Next:", ...indented(made.next)].join("\n");
    });
    return 0;
  },
};

/** Returns the module's name without the prefixes of file and package names. */
function nameOf(args: readonly string[]): string {
  const [given, ...more] = args;
  if (given === undefined || more.length > 0) {
    throw new UsageError("new takes one argument, the module's name: modhost new hello");
  }
  const name = given.replace(/^modhost-mod-/, "").replace(/^(?:mod_)+/, "");
  if (!isName(name)) {
    const near = name
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, "_")
      .replace(/^[_0-9]+|_+$/g, "");
    throw new UsageError(
      `${given} is not a valid module name: it takes lower-case letters, digits and _, and begins with a letter` +
        (isName(near) ? `: did you mean ${near}?` : ""),
    );
  }
  if (existsSync(join(bundledModules, `mod_${name}`))) {
    throw new UsageError(`The module ${name} comes with modhost: choose another name`);
  }
  return name;
}

/** Returns true for a valid name, from which an app name can be derived. */
function isName(text: string): boolean {
  return /^[a-z][a-z0-9_]*$/.test(text) && appName(text) !== "";
}

/** Returns one file for a folder of `plugin_paths`. */
async function looseFileOf(name: string, js: boolean, cwd: string, folder: string): Promise<Made> {
  const stem = `mod_${name}`;
  for (const taken of [stem, `${stem}.ts`, `${stem}.js`, `${stem}.mjs`, `${stem}.cjs`])
    refuseIfThere(join(folder, taken));
  const commonJs = commonJsManifest(folder);
  if (commonJs !== undefined && !js) {
    throw new UsageError(
      `TypeScript in ${folder} would be run as CommonJS: set "type": "module" in ${commonJs}, or add --js for a .mjs file`,
    );
  }
  const file = `${stem}.${!js ? "ts" : commonJs === undefined ? "js" : "mjs"}`;
  const path = relative(cwd, join(folder, file));
  return {
    folder,
    files: { [file]: fill(await template("mod_NAME.ts"), name) },
    next: [`${program(cwd)} run ${quoted(`.${sep}${path}`)}`, `curl http://localhost:5280/${appName(name)}/`],
  };
}

/** Returns a package with types, test and README. */
async function packageOf(name: string, js: boolean, cwd: string): Promise<Made> {
  const stem = `mod_${name}`;
  const folder = join(cwd, stem);
  refuseIfThere(folder);
  const extension = js ? "js" : "ts";
  const test = fill(await template("mod_NAME.test.ts"), name);
  const files = {
    "package.json": `${JSON.stringify(manifestOf(name, js, folder), null, 2)}\n`,
    ...(js ? {} : { "tsconfig.json": await template("tsconfig.json") }),
    [`${stem}.${extension}`]: fill(await template("mod_NAME.ts"), name),
    [`${stem}.test.${extension}`]: test.replaceAll(`${stem}.ts`, `${stem}.${extension}`),
    "README.md": fill(await template("README.md"), name).replaceAll("EXT", extension),
    ".gitignore": await template("gitignore"),
  };
  return { folder, files, next: [`cd ${stem}`, "npm install", "npm test", "npm start"] };
}

/** True if this program runs from its source tree instead of an npm installation. */
const isClone = existsSync(join(packageFolder(), "core/cli/main.ts"));

/**
 * The compiler version of packages: version 7 needs a fraction of a second for a module and its
 * test.
 */
const COMPILER = "^7.0.2";

/**
 * Returns the manifest of a package. Node.js does not run TypeScript below node_modules, so the
 * package contains JavaScript and declarations.
 */
function manifestOf(name: string, js: boolean, folder: string): object {
  const { version, engines, devDependencies } = packageManifest();
  const own = (...names: string[]) => Object.fromEntries(names.map((each) => [each, devDependencies[each]]));
  const stem = `mod_${name}`;
  const range = `^${version}`;
  const entry = js ? `./${stem}.js` : `./dist/${stem}.js`;
  // In a source tree, the tests and the compiler of the module use its dist/, which may be older
  // than the sources, so it is built first.
  const freshen = join(relative(folder, packageFolder()), "config/build/fresh.mjs");
  const build = isClone ? `node ${quoted(freshen)}${js ? "" : " --declarations"}` : undefined;
  return {
    name: `modhost-mod-${name}`,
    version: "0.1.0",
    description: `A module for modhost that serves /${appName(name)}`,
    keywords: ["modhost", "modhost-module"],
    license: "MIT",
    type: "module",
    engines: { node: engines.node },
    modhost: { kind: "module", entry, host: range },
    exports: js ? entry : { types: `./dist/${stem}.d.ts`, default: entry },
    files: js ? [`${stem}.js`] : ["dist", "!dist/*.test.*"],
    scripts: {
      start: `modhost run ./${stem}.${js ? "js" : "ts"}`,
      ...(build === undefined ? {} : { pretest: build, ...(js ? {} : { prebuild: build }) }),
      // A resource leak in a test must not keep the process alive.
      test: js ? "node --test --test-force-exit" : 'tsc --noEmit && node --test --test-force-exit "*.test.ts"',
      ...(js ? {} : { build: "tsc", prepack: "npm run build" }),
    },
    peerDependencies: { modhost: range },
    devDependencies: {
      ...(js ? {} : own("@types/node")),
      modhost: hostFor(folder) ?? range,
      ...(js ? {} : { typescript: COMPILER }),
    },
  };
}

/**
 * Returns the running modhost as a dependency of a package in `folder`, if it did not come from a
 * registry.
 */
function hostFor(folder: string): string | undefined {
  const folderOrPackage = isClone ? packageFolder() : localPackage();
  return folderOrPackage === undefined ? undefined : `file:${relative(folder, folderOrPackage).split(sep).join("/")}`;
}

/** Returns the tarball that modhost was installed from, if it was one. */
function localPackage(): string | undefined {
  const project = dirname(dirname(packageFolder()));
  const manifest = join(project, "package.json");
  if (!existsSync(manifest)) return undefined;
  const { dependencies, devDependencies }: Record<string, Record<string, string> | undefined> = JSON.parse(
    readFileSync(manifest, "utf8"),
  );
  const spec = dependencies?.modhost ?? devDependencies?.modhost;
  return spec?.startsWith("file:") ? resolve(project, spec.slice("file:".length)) : undefined;
}

/** Returns the package.json that makes files in a folder CommonJS, if any. */
function commonJsManifest(folder: string): string | undefined {
  const project = projectFolder(folder);
  if (project === undefined) return undefined;
  const manifest = join(project, "package.json");
  const { type }: { type?: string } = JSON.parse(readFileSync(manifest, "utf8"));
  return type === "commonjs" ? manifest : undefined;
}

function template(file: string): Promise<string> {
  return readFile(join(packageFolder(), "core/cli/scaffold", file), "utf8");
}

function fill(text: string, name: string): string {
  return text.replaceAll("PACKAGE", `modhost-mod-${name}`).replaceAll("NAME", name).replaceAll("APP", appName(name));
}

function refuseIfThere(path: string): void {
  if (existsSync(path)) throw new UsageError(`${path} already exists: choose another name, or remove it`);
}

/** Returns the command that starts this program from a folder. */
function program(cwd: string): string {
  const clone = relative(packageFolder(), cwd);
  if (!isClone || !clone.startsWith("..")) return "npx modhost";
  return `node ${quoted(relative(cwd, join(packageFolder(), "core/cli/launch.mjs")))}`;
}

function quoted(path: string): string {
  return /^[\w./\\:-]+$/.test(path) ? path : JSON.stringify(path);
}
