/** The permissions that a module declares, in its package.json or its file. */
import { convert, show } from "../config/index.ts";
import { permissionFields, permissionProblems } from "../permissions/index.ts";
import type { ModulePermissions } from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import type { ModuleSource } from "./locate.ts";

/**
 * Returns the declared permissions; `exported` are those of the file.
 * @throws {ModhostError} MODULE_INVALID for a declaration of another form, and for two declarations
 */
export function declaredPermissions(source: ModuleSource, exported: unknown): ModulePermissions {
  const { name, file = name, permissions: written } = source;
  const refuse = (reason: string) => new ModhostError("MODULE_INVALID", { file, reason, name });
  if (written !== undefined && exported !== undefined) {
    throw refuse("both its package.json and its file declare permissions: leave one of them out");
  }
  const value = written ?? exported;
  if (value === undefined) return {};
  const declared = converted(value, refuse);
  const [problem] = permissionProblems(declared, "permissions");
  if (problem !== undefined) throw refuse(`its ${problem.path} is ${show(problem.value)}, but ${problem.allowed}`);
  return declared;
}

/** Returns why a value declares no permissions; undefined for a correct declaration. */
export function permissionFault(value: unknown): string | undefined {
  try {
    declaredPermissions({ name: "", file: "", directory: "/", root: undefined }, value);
    return undefined;
  } catch (error) {
    return String((error as ModhostError).details.reason);
  }
}

function converted(value: unknown, refuse: (reason: string) => ModhostError): ModulePermissions {
  try {
    const form = { type: "object", fields: permissionFields, describe: "" } as const;
    return convert(form, "permissions", value, "/") as ModulePermissions;
  } catch (error) {
    const { name, value: shown, allowed } = (error as ModhostError).details;
    throw refuse(`its ${name} is ${shown}, but ${allowed}`);
  }
}
