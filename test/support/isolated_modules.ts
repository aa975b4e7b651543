/**
 * Runs the contract tests with isolated or sandboxed modules. With MODHOST_TEST_ISOLATED, the
 * modules of a test run in workers, and with MODHOST_TEST_SANDBOXED as well in sandboxes. Each of
 * them evaluates the test file without running its tests, and takes its module from there. So a
 * test cannot see variables that its handlers set.
 */
import { readdirSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { getCallSites } from "node:util";
import type { ModuleFunction } from "#core/types.ts";

/** The transports to test, separated by commas. Undefined if modules are not isolated. */
const setting = process.env.MODHOST_TEST_ISOLATED;

/** How the modules of a test run, if they do not run in the thread of the host. */
export const outsideMode = process.env.MODHOST_TEST_SANDBOXED === "1" ? "sandboxed" : "isolated";

/** Set by the files of modules, which are evaluated in a worker or a sandbox. */
const here = globalThis as { isModuleOfTest?: boolean };

export const isolatedTransports: readonly string[] | undefined = setting?.split(",");

type Modules = Readonly<Record<string, ModuleFunction>>;

interface Setup {
  readonly modules?: Modules | ((folder: string) => Modules);
}

/** The file that declares a setup, and the index of the setup in it. */
export interface SetupSource {
  readonly file: string;
  readonly index: number;
}

const inWorker: Setup[] = [];
const counts = new Map<string, number>();

/** In a worker, registers the setup for `moduleOf` and returns true: the worker starts no host. */
export function registerInWorker(setup: Setup): boolean {
  if (here.isModuleOfTest === true) inWorker.push(setup);
  return here.isModuleOfTest === true;
}

/**
 * Returns which setup is being declared: the test file that called the caller of this function, and
 * the number of its earlier setups. Undefined if modules are not isolated.
 */
export function setupSource(): SetupSource | undefined {
  if (isolatedTransports === undefined) return undefined;
  const script = getCallSites(3)[2]?.scriptName ?? "";
  const file = script.startsWith("file:") ? script : pathToFileURL(script).href;
  const index = counts.get(file) ?? 0;
  counts.set(file, index + 1);
  return { file, index };
}

/**
 * Returns the options with which modules run outside of the host's thread. Sandboxed ones may read
 * what is in a folder, except for its folder `data`, which is the server's.
 */
export function outsideOptions(
  names: readonly string[],
  folder: string,
  placed: readonly string[] = [],
): Record<string, unknown> {
  if (outsideMode === "isolated") return { modules_isolated: names };
  const files = readdirSync(folder).filter((name) => name !== "data");
  const read = [fileURLToPath(new URL("../../", import.meta.url)), ...files.map((name) => join(folder, name))];
  return {
    modules: Object.fromEntries(
      names.map((name) => [name.replace(/^mod_/, ""), { run: "sandboxed", grant: { read } }]),
    ),
    ...(placed.length > 0 && { http_paths: Object.fromEntries(placed.map((name) => [name, `/${name}`])) }),
  };
}

/** Writes a file for each module. Returns their paths. */
export async function writeModules(
  { file, index }: SetupSource,
  names: readonly string[],
  folder: string,
): Promise<string[]> {
  await mkdir(join(folder, "isolated"));
  const paths = names.map((name) => join(folder, "isolated", `${name}.js`));
  const values = [import.meta.url, file, index, folder];
  const [support, test, at, where] = values.map((value) => JSON.stringify(value));
  for (const [which, path] of paths.entries()) {
    const name = JSON.stringify(names[which]);
    const lines = [
      'import { registerHooks } from "node:module";',
      "globalThis.isModuleOfTest = true;",
      `const noTests = ${JSON.stringify(noTests)};`,
      'registerHooks({ resolve: (name, context, next) => name === "node:test" ? { url: noTests, shortCircuit: true } : next(name, context) });',
      `const { moduleOf } = await import(${support});`,
      `await import(${test});`,
      `export default moduleOf(${at}, ${where}, ${name});`,
    ];
    await writeFile(path, lines.join("\n"));
  }
  return paths;
}

/** In a worker, returns a module of the setup that the test file declares at this index. */
export function moduleOf(index: number, folder: string, name: string): ModuleFunction | undefined {
  const modules = inWorker[index]?.modules;
  return (typeof modules === "function" ? modules(folder) : modules)?.[name];
}

/** `node:test` for workers: it runs suites, but no tests. */
const noTests = `data:text/javascript,${encodeURIComponent(
  "export const describe = (_name, suite) => suite(); export const test = () => undefined; export const before = test, after = test, beforeEach = test, afterEach = test, it = test; export default test;",
)}`;

/** Statements of the contract that isolated modules do not have to meet, and the reasons. */
export const notIsolated: Readonly<Record<string, string>> = {
  ...of("the test reads variables that handlers set", "D60 D62"),
  ...of("serve() returns a handler, which cannot be sent to another thread", "C2.26 C2.27 C2.28 C2.29 C4.11 C4.12 D53"),
  ...(outsideMode === "sandboxed" ? notSandboxed() : {}),
  ...of("methods of depends() return promises in a worker, and must be declared before", "D59"),
};

/** Statements that a sandboxed module does not have to meet in addition, and the reasons. */
function notSandboxed(): Record<string, string> {
  return {
    ...of("an app of a sandboxed module is at its own path unless http_paths places it", "C4.4 D45"),
    ...of("an app of a sandboxed module has no priority above 0", "D39"),
  };
}

function of(why: string, ids: string): Record<string, string> {
  return Object.fromEntries(ids.split(" ").map((id) => [id, why]));
}

/** Returns the reason to leave out a test with this title, or undefined. */
export function leftOut(title: string): string | undefined {
  const [id = ""] = title.split(" ", 1);
  return isolatedTransports === undefined ? undefined : notIsolated[id];
}
