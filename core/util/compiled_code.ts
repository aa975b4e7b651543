/** The compiled code of the bundled program, which `config/build/program.mjs` caches in a file. */
interface BundledMeta {
  openCompiled?(): number | undefined;
}

/**
 * Opens the file for reading, for a process that cannot find it itself. Returns the descriptor;
 * undefined without such a file, as in the source tree.
 */
export const openCompiledCode = (): number | undefined => (import.meta as BundledMeta).openCompiled?.();
