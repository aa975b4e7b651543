/** Loads the example modules of the documentation in tests. */
import { fileURLToPath } from "node:url";

/** Examples that are a folder with an index file. The others are one file each. */
const folders: ReadonlySet<string> = new Set(["site"]);

export const exampleNames = ["upload", "proxy", "site", "todo", "chat"] as const;

/** Returns the path of an example, for a host. */
export function exampleFile(name: (typeof exampleNames)[number]): string {
  const file = folders.has(name) ? `mod_${name}` : `mod_${name}.ts`;
  return fileURLToPath(new URL(`../../../../docs/examples/${file}`, import.meta.url));
}

/** Returns the targets of the links on a page. */
export function listed(page: string): string[] {
  return [...page.matchAll(/<a href="([^"]*)"/g)].map(([, link = ""]) => link);
}
