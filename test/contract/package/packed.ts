/**
 * Makes the package as npm would publish it from a copy of the clone: neither the clone nor its
 * `dist/` changes.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, readFile, realpath, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const clone = fileURLToPath(new URL("../../../", import.meta.url));
const left = new Set([".git", "data", "node_modules", "test"]);

export interface Packed extends AsyncDisposable {
  /** Removed at the end. */
  readonly folder: string;
  readonly tarball: string;
  /** Paths in the tarball. */
  readonly files: readonly string[];
}

/** Builds and packs, as `npm pack` does. */
export async function pack(): Promise<Packed> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "modhost-package-")));
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    const copy = join(folder, "clone");
    await cp(clone, copy, {
      recursive: true,
      filter: (path) => !left.has(relative(clone, path)),
    });
    await symlink(join(clone, "node_modules"), join(copy, "node_modules"));
    // As prepack does, without checking types: `npm run typecheck` does that once. A build of the
    // clone is used if it has the same sources.
    await run(process.execPath, ["config/build/fresh.mjs", "--declarations"], copy);
    const said = await run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", folder], copy);
    const [made]: { filename: string; files: { path: string }[] }[] = JSON.parse(said.slice(said.indexOf("[")));
    if (made === undefined) throw new Error(`npm pack says ${said}`);
    await rm(copy, { recursive: true });
    return {
      folder,
      tarball: join(folder, made.filename),
      files: made.files.map(({ path }) => path),
      [Symbol.asyncDispose]: remove,
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

/**
 * Makes a folder in which the tarball is installed, without a registry: dependencies, and packages
 * that an author would add, come from the clone. `lean` leaves out optional packages, as
 * `npm install --omit=optional` does.
 */
export async function install(
  { folder, tarball }: Packed,
  authors: readonly string[],
  { lean = false } = {},
): Promise<string> {
  const project = join(folder, lean ? "lean" : "project");
  const modules = join(project, "node_modules");
  await mkdir(join(modules, ".bin"), { recursive: true });
  await run("tar", ["-xzf", tarball, "-C", modules], folder);
  await run("mv", ["package", "modhost"], modules);
  const { dependencies, optionalDependencies } = await manifestOf("modhost");
  const optional = Object.keys(lean ? {} : optionalDependencies).filter((name) =>
    existsSync(join(clone, "node_modules", name)),
  );
  for (const name of [...Object.keys(dependencies), ...optional, ...authors]) {
    await mkdir(dirname(join(modules, name)), { recursive: true });
    await symlink(join(clone, "node_modules", name), join(modules, name));
  }
  for (const name of ["modhost", ...authors]) {
    const { bin = {} } = await manifestOf(name);
    for (const [command, path] of Object.entries(bin))
      await symlink(join("..", name, path), join(modules, ".bin", command));
  }
  return project;

  async function manifestOf(name: string): Promise<Manifest> {
    return JSON.parse(await readFile(join(modules, name, "package.json"), "utf8"));
  }
}

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
  readonly bin?: Readonly<Record<string, string>>;
}

/** Runs a program and resolves to its output. If it fails, the error contains the output. */
export async function run(program: string, args: readonly string[], cwd: string): Promise<string> {
  // Variables of a test runner that would run nested, and the condition for sources, are removed.
  const { NODE_TEST_CONTEXT: _test, NODE_OPTIONS: _options, ...inherited } = process.env;
  const env = { ...inherited, PATH: [dirname(process.execPath), process.env.PATH].join(delimiter) };
  try {
    const { stdout } = await promisify(execFile)(program, args, { cwd, env, maxBuffer: 2 ** 26 });
    return stdout;
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
    throw new Error(`${[program, ...args].join(" ")} failed in ${cwd}\n${stdout}${stderr}`, { cause: error });
  }
}
