/** `modhost run --watch`: saved files are served, and failures are shown with their line. */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { Program } from "./spawned.ts";

const app = (text: string) => `export default (module) => {
  module.depends("http");
  module.provides("http", { route: { "GET /": () => ${text} } });
};
`;

test("run --watch reloads a module whose file is saved, shows the line of a failure, and applies the config file", async () => {
  const config = (paths: object) => JSON.stringify({ modules_enabled: ["http", "./mod_http_a.mjs"], ...paths });
  await using program = await Program.in({ "mod_http_a.mjs": app('"one"'), "modhost.config.json": config({}) });
  const server = await program.serve(["run", "--watch"]);
  const get = async (path: string) => (await fetch(`http://127.0.0.1:${server.started.ports[0]?.port}${path}`)).text();
  const save = async (text: string) => {
    const printed = server.next('"changed"');
    await writeFile(join(program.folder, "mod_http_a.mjs"), text);
    return JSON.parse(await printed).change;
  };
  assert.equal(await get("/a/"), "one");
  assert.equal((await save(app('"two"'))).result, "done");
  assert.equal(await get("/a/"), "two");

  const { error } = await save(app("half of it"));
  const { file, line, text } = error.place;
  assert.deepEqual([file, line], [join(program.folder, "mod_http_a.mjs"), 3]);
  assert.match(text, /half of it/);
  assert.equal(await get("/a/"), "two");

  assert.equal((await save(app('"three"'))).result, "done");
  await writeFile(join(program.folder, "modhost.config.json"), config({ http_paths: { a: "/elsewhere" } }));
  while ((await get("/elsewhere/")) !== "three");
  server.kill("SIGTERM");
  assert.equal((await server.ended).code, 0);
});
