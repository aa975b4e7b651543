/** The prefix of environment variables that set options. */
export const environmentPrefix = "MODHOST_";

/** Returns true if the name of a variable starts with MODHOST_, in any case. */
export function isOwnVariable(variable: string): boolean {
  return variable.slice(0, environmentPrefix.length).toUpperCase() === environmentPrefix;
}
