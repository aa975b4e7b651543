/** `npm run test:browser`: tests the dashboard pages of the module in the guide. */
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { launched, opened } from "./pages.ts";
import { DashboardServer } from "./server.ts";

const guide = new URL("../../../docs/guides/extend/dashboard-pages.md", import.meta.url);

test("the pages of the guide's module are in the navigation and show the response of its operation", async () => {
  const blocks = [...(await readFile(guide, "utf8")).matchAll(/```js\n([\s\S]*?)```/g)].map(([, code = ""]) => code);
  await using server = await DashboardServer.started();
  await mkdir(join(server.folder, "notes_pages"));
  for (const [at, name] of ["mod_notes.js", "notes_pages/main.js", "notes_pages/notes.js"].entries())
    await server.write(name, blocks[at] ?? "");
  const headers = { "Content-Type": "application/json" };
  const body = JSON.stringify({ name: "notes" });
  await (await fetch(`${server.admin}/admin/api/modules`, { method: "POST", headers, body })).arrayBuffer();
  const browser = await launched();
  try {
    await using tab = await opened(browser, `${server.admin}/admin/`);
    await tab.page.getByRole("link", { name: "Notes" }).click();
    await tab.page.getByRole("cell", { name: "Buy milk" }).waitFor();
  } finally {
    await browser.close();
  }
});
