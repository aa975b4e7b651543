/** Part of `npm run build`: pages for browsers, which no compiler touches, go to `dist/` as they are. */
import { cpSync, existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const clone = fileURLToPath(new URL("../../", import.meta.url));

for (const name of readdirSync(join(clone, "modules"))) {
  const pages = join("modules", name, "pages");
  if (existsSync(join(clone, pages))) cpSync(join(clone, pages), join(clone, "dist", pages), { recursive: true });
}
