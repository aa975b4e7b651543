/** Runs programs that use Helia, whose packages are in a folder of their own. */
import { readFile } from "node:fs/promises";

/**
 * Returns the source of a program with `startHelia` before it. It has to be evaluated in that
 * folder.
 */
export async function heliaProgram(file: URL): Promise<string> {
  const texts = [new URL("start_helia.mjs", import.meta.url), file].map((each) => readFile(each, "utf8"));
  return (await Promise.all(texts)).join("\n");
}
