/** Watched module files: saved files are served, and failures are shown with their line. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createHost } from "#core/index.ts";
import type { Change } from "#core/types.ts";
import { eventually } from "#test/support/eventually.ts";

const NAVIGATION = { Accept: "text/html,application/xhtml+xml", "Sec-Fetch-Mode": "navigate" };

const app = (expression: string, head = "") =>
  `${head}\nexport default (module) => {\n  module.depends("http");\n  module.provides("http", { route: { "GET /": () => ${expression} } });\n};\n`;

async function watched(files: Record<string, string>, modules: readonly string[]) {
  const folder = await mkdtemp(join(tmpdir(), "modhost-watch-"));
  const write = async (name: string, text: string) => {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  };
  for (const [name, text] of Object.entries(files)) await write(name, text);
  // A file that is saved during the start counts as changed.
  await sleep(150);
  const changes: Change[] = [];
  let logged = "";
  const host = createHost({
    cwd: folder,
    config: {
      modules_enabled: ["http", ...modules],
      http_ports: [0],
      https_ports: [],
      http_interfaces: ["127.0.0.1"],
      data_path: join(folder, "data"),
    },
    log: { destination: { write: (line: string) => void (logged += line) } },
    watch: (change) => void changes.push(change),
  });
  await host.start();
  // fetch would set its own Sec-Fetch headers.
  const ask = async (path: string, headers: Record<string, string> = {}) => {
    const port = host.listening()[0]?.port as number;
    const sent = request({ port, host: "127.0.0.1", path, headers, agent: false }).end();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    return { status: response.statusCode, text: await text(response) };
  };
  return {
    folder,
    write,
    changes,
    log: () => logged,
    ask,
    get: async (path: string, headers?: Record<string, string>) => (await ask(path, headers)).text,
    /** Waits until this many changes were reported. */
    reported: async (count: number) => {
      await eventually(`${count} changes`, () => changes.length >= count);
      return changes[count - 1] as Change;
    },
    async [Symbol.asyncDispose]() {
      await host.stop();
      await rm(folder, { recursive: true });
    },
  };
}

describe("modules whose files are watched", { concurrency: 4, timeout: 240_000 }, () => {
  test("are reloaded if a file was saved after it was loaded, while the server still started", async () => {
    const folder = await mkdtemp(join(tmpdir(), "modhost-early-"));
    const file = join(folder, "mod_http_a.mjs");
    const saved = `import { writeFileSync } from "node:fs";\nwriteFileSync(${JSON.stringify(file)}, ${JSON.stringify(app('"two"'))});`;
    await writeFile(file, app('"one"', saved));
    try {
      await using host = await watched({}, [file]);
      assert.equal((await host.reported(1)).result, "done");
      assert.equal(await host.get("/a/"), "two");
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test("are reloaded when a file is written, when another replaces it, and when a file that they import changes", async () => {
    const main = app("text", 'import { text } from "./parts/text.mjs";');
    await using host = await watched(
      { "mod_http_a.mjs": main, "parts/text.mjs": 'export const text = "one";', "mod_http_b.mjs": app('"b"') },
      ["./mod_http_a.mjs", "./mod_http_b.mjs"],
    );
    assert.equal(await host.get("/a/"), "one");
    await host.write("parts/text.mjs", 'export const text = "two";');
    const { what, by, result } = await host.reported(1);
    assert.deepEqual({ what, by, result }, { what: "reload http_a", by: "file watch", result: "done" });
    assert.equal(await host.get("/a/"), "two");

    // This is how editors save.
    await host.write(".mod_http_a.mjs.swp", app('"three"'));
    await rename(join(host.folder, ".mod_http_a.mjs.swp"), join(host.folder, "mod_http_a.mjs"));
    assert.equal((await host.reported(2)).what, "reload http_a");
    assert.equal(await host.get("/a/"), "three");
    await rename(join(host.folder, "mod_http_a.mjs"), join(host.folder, "mod_http_a.mjs~"));
    await sleep(30);
    await host.write("mod_http_a.mjs", app('"four"'));
    assert.equal((await host.reported(3)).result, "done");
    assert.equal(await host.get("/a/"), "four");

    // A write in several pieces, or of files that do not matter, is at most one change.
    await host.write("notes.txt", "no part of any module");
    await readFile(join(host.folder, "mod_http_b.mjs"));
    await sleep(300);
    assert.equal(host.changes.length, 3);
  });

  test("keep serving if the new code fails, and a browser shows the line", async () => {
    await using host = await watched(
      {
        "mod_http_a.mjs": app("text()", 'import { text } from "./text.mjs";'),
        "text.mjs": "export const text = () => 'one';",
      },
      ["./mod_http_a.mjs"],
    );
    assert.equal(await host.get("/a/", NAVIGATION), "one");
    await host.write("text.mjs", "const x = 1;\nexport const text = () => <b>;\n");
    const { result, error } = await host.reported(1);
    assert.equal(result, "failed");
    assert.deepEqual(error?.place, {
      file: join(host.folder, "text.mjs"),
      line: 2,
      text: "export const text = () => <b>;",
    });
    assert.equal(await host.get("/a/"), "one", "programs are answered by the old instance");
    const page = await host.ask("/a/", NAVIGATION);
    assert.equal(page.status, 500);
    const html = page.text;
    assert.ok(html.includes(`${join(host.folder, "text.mjs")}:2`), html);
    assert.ok(html.includes("export const text = () =&#62; &#60;b&#62;;"), html);
    assert.equal(await host.get("/a/", { ...NAVIGATION, "X-Forwarded-For": "203.0.113.1" }), "one", "no source leaves");
    assert.equal(await host.get("/a/", { ...NAVIGATION, "Sec-Fetch-Mode": "cors" }), "one");

    await host.write("text.mjs", "export const text = () => 'two';");
    assert.equal((await host.reported(2)).result, "done");
    assert.equal(await host.get("/a/", NAVIGATION), "two");
  });

  test("that failed at the start are shown, and tried again when a missing file appears", async () => {
    await using host = await watched(
      {
        "mod_http_a.mjs": app("text", 'import { text } from "./parts/text.mjs";'),
        "mod_http_b.mjs": app('"b"', "export const depends = ['http_a'];"),
      },
      ["./mod_http_b.mjs", "./mod_http_a.mjs"],
    );
    await host.reported(2);
    const page = await host.get("/a/", NAVIGATION);
    assert.match(page, /Cannot find module .*text\.mjs/);
    await mkdir(join(host.folder, "parts"));
    await sleep(150);
    await host.write("parts/text.mjs", "export const text = 'here';");
    await eventually("it is loaded", async () => (await host.get("/b/")) === "b");
    assert.equal(await host.get("/a/", NAVIGATION), "here");
  });

  test("are watched only if the option watch is set", async () => {
    await using host = await watched({ "mod_http_a.mjs": app('"one"') }, ["./mod_http_a.mjs"]);
    const other = createHost({ config: { modules_enabled: [] }, log: false });
    await other.start();
    await other.stop();
    assert.equal(await host.get("/a/"), "one");
  });
});
