/** Environment variables that set options. */
import type { OptionDeclaration } from "../types.ts";
import { environmentPrefix, isOwnVariable } from "../util/own_variables.ts";

/**
 * Returns the values of the variables MODHOST_<OPTION NAME>, by option name. The case of a variable
 * does not matter: if only capitals counted, a guard that is set by `modhost_guard` would be lost.
 * If a name occurs in several spellings, the one in capitals wins.
 */
export function environmentOptions(env: NodeJS.ProcessEnv): Map<string, string> {
  const options = new Map<string, string>();
  for (const variable of Object.keys(env).filter(isOwnVariable)) {
    const text = env[variable.toUpperCase()] ?? env[variable];
    if (text !== undefined) options.set(variable.slice(environmentPrefix.length).toLowerCase(), text);
  }
  return options;
}

/** Returns the environment variable that sets an option. */
export function variableOf(name: string): string {
  return environmentPrefix + name.toUpperCase();
}

/** Reads JSON where the type has such a form, and lists also as "a, b". Other values stay text. */
export function readVariable(text: string, declaration: OptionDeclaration | undefined): unknown {
  const type = declaration?.type ?? "any";
  const isList = type === "strings" || type === "ports";
  if (type === "object" || type === "any" || (isList && text.trimStart().startsWith("["))) {
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  }
  if (!isList) return text;
  return text
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
}
