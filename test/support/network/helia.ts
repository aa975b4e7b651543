/** Programs of helia, whose packages are in a folder of their own. */
import { readFile } from "node:fs/promises";

/** The text of a program, to be evaluated in such a folder: with `startHelia` before it. */
export async function heliaProgram(file: URL): Promise<string> {
  const texts = [new URL("start_helia.mjs", import.meta.url), file].map((each) => readFile(each, "utf8"));
  return (await Promise.all(texts)).join("\n");
}
