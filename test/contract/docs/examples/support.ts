/** The example modules of the documentation, as tests load them. */
import { fileURLToPath } from "node:url";

/** Examples that are a folder with an index file; the others are one file each. */
const folders: ReadonlySet<string> = new Set(["site"]);

export const exampleNames = ["upload", "proxy", "site", "todo", "chat"] as const;

/** The path of an example, to be given to a host. */
export function exampleFile(name: (typeof exampleNames)[number]): string {
  const file = folders.has(name) ? `mod_${name}` : `mod_${name}.ts`;
  return fileURLToPath(new URL(`../../../../docs/examples/${file}`, import.meta.url));
}

/** Where the links of a page lead. */
export function listed(page: string): string[] {
  return [...page.matchAll(/<a href="([^"]*)"/g)].map(([, link = ""]) => link);
}
