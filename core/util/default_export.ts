/**
 * Unwraps the exports that compilers generate from ES modules for CommonJS: they are fields of
 * `module.exports`, which Node.js returns as the default export.
 */
export function unwrapped(exported: Record<string, unknown>): Record<string, unknown> {
  const main = exported.default;
  const isCompiled = typeof main === "object" && main !== null && "__esModule" in main && "default" in main;
  return isCompiled ? (main as Record<string, unknown>) : exported;
}
