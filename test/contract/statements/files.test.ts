/** Parts 2 and 4 of the specification: `serve()` of mod_http_files, and the module's own folder. */
import assert from "node:assert/strict";
import { mkdir, realpath, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe } from "node:test";
import type { Handler, Module } from "#core/types.ts";
import { withHost } from "#test/support/host.ts";
import { overEach } from "#test/support/transports.ts";

type Serve = (
  options: string | { path: string; directory_index?: boolean; index_files?: readonly string[] },
) => Handler;

const site = async (folder: string) => {
  for (const part of ["site/listed", "site/indexed", "site/plain"])
    await mkdir(join(folder, part), { recursive: true });
  await writeFile(join(folder, "secret.txt"), "outside the root");
  await writeFile(join(folder, "site", "page.html"), "<h1>page</h1>");
  await writeFile(join(folder, "site", "listed", "entry <1>.txt"), "listed");
  await writeFile(join(folder, "site", "indexed", "index.html"), "default index");
  await writeFile(join(folder, "site", "indexed", "start.htm"), "own index");
};

const statics = (folder: string) => ({
  mod_http_static(module: Module) {
    module.depends("http");
    const { serve } = module.depends<{ serve: Serve }>("http_files");
    const root = join(folder, "site");
    module.provides("http", {
      route: {
        "GET /text": serve(join(root, "page.html")),
        "GET /option": serve({ path: join(root, "page.html") }),
        "GET /tree/*": serve(root),
        "GET /slash/*": serve({ path: `${root}/` }),
        "GET /listed/*": serve({ path: root, directory_index: true }),
        "GET /closed/*": serve({ path: root, directory_index: false }),
        "GET /named/*": serve({ path: root, index_files: ["start.htm"] }),
      },
    });
  },
});

const host = withHost({
  prepare: site,
  modules: statics,
  config: { modules_enabled: ["http", "http_errors", "http_dir_listing"] },
});

overEach(host, "C2.26 the option path is the directory that is served", async (client) => {
  assert.equal(await client.text("/static/tree/page.html"), "<h1>page</h1>");
  assert.equal(await client.text("/static/slash/page.html"), "<h1>page</h1>");
  assert.equal(await client.status("/static/tree/none.html"), 404);
  for (const path of ["/static/tree/../secret.txt", "/static/tree/%2e%2e/secret.txt", "/static/tree/..%2fsecret.txt"]) {
    const reply = await client.request(path);
    assert.ok(reply.status === 400 || reply.status === 404, `${path}: ${reply.status}`);
    assert.doesNotMatch(reply.text, /outside the root/);
  }
});

overEach(host, "C2.27 the option directory_index allows listing files", async (client) => {
  const reply = await client.request("/static/listed/listed/");
  assert.equal(reply.status, 200);
  assert.match(reply.text, /entry &lt;1&gt;\.txt|entry &#60;1&#62;\.txt|entry &#x3C;1&#x3E;\.txt/i);
  assert.equal(await client.status("/static/closed/listed/"), 403);
  assert.equal(await client.status("/static/tree/listed/"), 403);
});

overEach(host, "C2.28 the option index_files names the files tried as directory index", async (client) => {
  assert.equal(await client.text("/static/named/indexed/"), "own index");
  assert.equal(await client.text("/static/tree/indexed/"), "default index");
});

overEach(host, "C2.29 serve given a plain file path serves that file", async (client) => {
  assert.equal(await client.text("/static/text"), "<h1>page</h1>");
  assert.equal(await client.text("/static/option"), "<h1>page</h1>");
});

overEach(host, "C4.11 serve returns a handler for plain and for wildcard routes", async (client) => {
  assert.equal(await client.text("/static/text"), "<h1>page</h1>");
  assert.equal(await client.text("/static/tree/indexed/start.htm"), "own index");
});

describe("without a module for listings", () => {
  const bare = withHost({
    prepare: site,
    modules: statics,
    config: { modules_enabled: ["http", "http_errors", "http_files"] },
  });

  overEach(bare, "C4.12 listings are made by another module", async (client) => {
    assert.equal(await client.status("/static/listed/listed/"), 403);
    assert.equal(await client.status("/static/tree/page.html"), 200);
  });
});

describe("with a module that is a folder", () => {
  const files = withHost({
    async prepare(folder) {
      await mkdir(join(folder, "plugins", "mod_http_home", "www"), { recursive: true });
      await writeFile(join(folder, "plugins", "mod_http_home", "www", "index.html"), "next to the module");
      await writeFile(
        join(folder, "plugins", "mod_http_home", "index.js"),
        `export default function (module) {
          module.depends("http");
          const { serve } = module.depends("http_files");
          module.provides("http", {
            route: { "GET /directory": () => module.get_directory(), "GET /www/*": serve(module.get_directory() + "/www") },
          });
        }\n`,
      );
    },
    config: (folder) => ({ plugin_paths: [join(folder, "plugins")], modules_enabled: ["http_home"] }),
  });

  overEach(files, "C4.13 module.get_directory gives the module's own directory", async (client, { folder }) => {
    const directory = await client.text("/home/directory");
    assert.equal(await realpath(directory), await realpath(join(folder, "plugins", "mod_http_home")));
    assert.equal(await client.text("/home/www/"), "next to the module");
  });
});

overEach(host, "D53 a directory without slash is redirected, keeping the query", async (client) => {
  const reply = await client.request("/static/tree/indexed?a=%20b");
  assert.deepEqual([reply.status, reply.header("location")], [301, "/static/tree/indexed/?a=%20b"]);
});
