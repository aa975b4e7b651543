import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { ModhostError } from "./errors.ts";
import { projectFolder } from "./package.ts";

const notFound: ReadonlySet<unknown> = new Set(["ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND"]);

/**
 * Explains an import of the module `name` that failed because npm left out an optional dependency
 * of the package to which `file` belongs. Returns all other errors as they are.
 */
export function explainMissing(error: unknown, name: string, file: string): unknown {
  if (!(error instanceof Error) || !("code" in error) || !notFound.has(error.code)) return error;
  const [, missing] = /^Cannot find (?:module|package) '((?:@[^/']+\/)?[^/']+)/.exec(error.message) ?? [];
  const folder = projectFolder(dirname(file));
  if (missing === undefined || folder === undefined) return error;
  const { optionalDependencies = {} }: { optionalDependencies?: object } = JSON.parse(
    readFileSync(join(folder, "package.json"), "utf8"),
  );
  if (!Object.hasOwn(optionalDependencies, missing)) return error;
  return new ModhostError("PACKAGE_MISSING", { name, package: missing }, { cause: error });
}
