/**
 * The contract over isolated modules. With MODHOST_TEST_ISOLATED the modules of a test run in
 * workers: each evaluates the test's own file, in which no test runs then, and takes its module
 * from there. What handlers leave in variables is not seen by the test.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { getCallSites } from "node:util";
import { isMainThread } from "node:worker_threads";
import type { ModuleFunction } from "#core/types.ts";

/** The transports to ask over, separated by commas; undefined where modules are not isolated. */
const asked = process.env.MODHOST_TEST_ISOLATED;

export const isolatedTransports: readonly string[] | undefined = asked?.split(",");

type Modules = Readonly<Record<string, ModuleFunction>>;

interface Setup {
  readonly modules?: Modules | ((folder: string) => Modules);
}

/** Where the modules of a setup are, for a worker. */
export interface SetupPlace {
  readonly file: string;
  readonly index: number;
}

const inWorker: Setup[] = [];
const counts = new Map<string, number>();

/** True in a worker: the setup is kept for its module, and there is no host to start. */
export function isKept(setup: Setup): boolean {
  if (!isMainThread) inWorker.push(setup);
  return !isMainThread;
}

/**
 * The place of the setup that the caller's caller declares now; undefined where modules are not
 * isolated.
 */
export function placeOfSetup(): SetupPlace | undefined {
  if (isolatedTransports === undefined) return undefined;
  const script = getCallSites(3)[2]?.scriptName ?? "";
  const file = script.startsWith("file:") ? script : pathToFileURL(script).href;
  const index = counts.get(file) ?? 0;
  counts.set(file, index + 1);
  return { file, index };
}

/** Writes a file for each module, and gives their paths. */
export async function writeModules(
  { file, index }: SetupPlace,
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

/** In a worker: a module of the setup that the test's file declares at this place. */
export function moduleOf(index: number, folder: string, name: string): ModuleFunction | undefined {
  const modules = inWorker[index]?.modules;
  return (typeof modules === "function" ? modules(folder) : modules)?.[name];
}

/** `node:test` in a worker: suites are looked into, tests are not run. */
const noTests = `data:text/javascript,${encodeURIComponent(
  "export const describe = (_name, suite) => suite(); export const test = () => undefined; export const before = test, after = test, beforeEach = test, afterEach = test, it = test; export default test;",
)}`;

/** Statements that an isolated module is not asked for, and why. */
export const notIsolated: Readonly<Record<string, string>> = {
  ...of("the test reads what handlers leave in variables", "D60 D62"),
  ...of("serve() gives a handler, which cannot cross", "C2.26 C2.27 C2.28 C2.29 C4.11 C4.12 D53"),
  ...of("what depends() gives answers by promises, and is declared beforehand", "D59"),
};

function of(why: string, ids: string): Record<string, string> {
  return Object.fromEntries(ids.split(" ").map((id) => [id, why]));
}

/** Why a test of this title is left out now; undefined where it runs. */
export function leftOut(title: string): string | undefined {
  const [id = ""] = title.split(" ", 1);
  return isolatedTransports === undefined ? undefined : notIsolated[id];
}
