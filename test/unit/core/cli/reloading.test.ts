/** SIGHUP reloads the configuration of a running server and does not end it. */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Program } from "./spawned.ts";

const notes = `export const options = { notes_text: { type: "string", default: "none", describe: "For a test." } };
export default function notes(module) {
  module.depends("http");
  const text = module.get_option_string("notes_text");
  module.provides("http", { route: { "GET /": () => text } });
}`;

/** Sends a line with each request, until the server ends. */
const clock = `export default function clock(module) {
  module.depends("http");
  let asked = Promise.withResolvers();
  module.provides("http", { route: {
    "GET /stream": async function* () { yield "first\\n"; await asked.promise; yield "next\\n"; },
    "GET /send": () => (asked.resolve(), "sent"),
  } });
}`;

const config = (values: Record<string, unknown>) =>
  JSON.stringify({ modules_enabled: ["http", "./mod_http_notes.mjs", "./mod_http_clock.mjs"], ...values });

async function serving() {
  const program = await Program.in({
    "mod_http_notes.mjs": notes,
    "mod_http_clock.mjs": clock,
    "modhost.config.json": config({ notes_text: "one" }),
  });
  const running = await program.serve(["run"]);
  const port = running.started.ports[0]?.port;
  return {
    ...running,
    get: async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).text(),
    stream: async () => (await fetch(`http://127.0.0.1:${port}/clock/stream`)).body?.getReader(),
    /** Writes the config file, sends SIGHUP, and returns what the program prints then. */
    async reload(text: string) {
      const said = running.next('"event"');
      await writeFile(join(program.folder, "modhost.config.json"), text);
      running.kill("SIGHUP");
      return JSON.parse(await said);
    },
    [Symbol.asyncDispose]: () => program[Symbol.asyncDispose](),
  };
}

describe("a server that gets SIGHUP", { concurrency: 2 }, () => {
  test("applies the changes of its config file, and nothing from an invalid file", async () => {
    await using server = await serving();
    assert.equal(await server.get("/notes"), "one");
    const stream = await server.stream();
    const piece = async () => new TextDecoder().decode((await stream?.read())?.value);
    assert.equal(await piece(), "first\n");

    const { event, plan } = await server.reload(config({ notes_text: "two" }));
    assert.equal(event, "reloaded");
    assert.deepEqual(plan.modules, [{ action: "exchange", module: "http_notes", host: "*", because: ["notes_text"] }]);
    assert.equal(await server.get("/notes"), "two");

    assert.deepEqual(await server.reload("{ half of it"), { event: "refused", code: "CONFIG_UNREADABLE" });
    assert.deepEqual(await server.reload(config({ notes_text: 3 })), { event: "refused", code: "CONFIG_INVALID" });
    assert.equal(await server.get("/notes"), "two");

    assert.equal(await server.get("/clock/send"), "sent");
    assert.equal(await piece(), "next\n");
    await stream?.cancel();
    server.kill("SIGTERM");
    const { stderr, code } = await server.ended;
    assert.equal(code, 0);
    assert.match(stderr, /Cannot reload the configuration: The config file .* cannot be read: line 1, column 3/);
    assert.match(stderr, /notes_text is 3, but it must be text/);
  });

  test("says if there is no config file to read, and keeps serving", async () => {
    await using program = await Program.in({ "mod_http_notes.mjs": notes });
    const running = await program.serve(["run", "./mod_http_notes.mjs"], { MODHOST_MODULES_ENABLED: "http" });
    const said = running.next('"event"');
    running.kill("SIGHUP");
    assert.deepEqual(JSON.parse(await said), { event: "refused", code: "CONFIG_FIXED" });
    assert.equal(await (await fetch(running.started.apps[0]?.urls[0] ?? "")).text(), "none");
    running.kill("SIGTERM");
    assert.equal((await running.ended).code, 0);
  });
});
