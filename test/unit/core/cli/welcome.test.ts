import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Started, welcome } from "#core/cli/welcome.ts";
import type { ModuleState } from "#core/types.ts";
import { Program } from "./spawned.ts";

const app = (name: string, ...urls: string[]) => ({ name, module: `http_${name}`, host: "*", urls });
const failed = { name: "notes", host: "*", status: "failed", note: "no luck (mod_notes.ts:3)" } as ModuleState;

function shown(started: Partial<Started>, width?: number): string {
  const nothing = { apps: [], failed: [], data: "/srv/data", config: "/srv/c.yaml", ports: ["http on 127.0.0.1:80"] };
  return welcome({ ...nothing, ...started }, { paint: (_style, text) => text, width });
}

describe("the text that run prints on a terminal", () => {
  test("contains the address of each app", () => {
    const text = shown({ apps: [app("dashboard", "http://a/admin/"), app("files", "http://a/", "https://a/")] });
    assert.match(
      text,
      /^modhost serves\n\n {2}dashboard {2}http:\/\/a\/admin\/\n {2}files {6}http:\/\/a\/ +https:\/\/a\/\n/,
    );
  });

  test("contains the failed modules with reasons, and what to try next", () => {
    const text = shown({ apps: [app("files", "http://a/")], failed: [failed] });
    assert.match(text, /^ {2}failed {2}notes: no luck \(mod_notes\.ts:3\)$/m);
    assert.match(text, /modhost reload notes/);
    assert.match(shown({}), /modhost new/);
    assert.match(shown({ config: undefined }), /\/srv\/data\/www/);
    assert.match(text, /\nStop with Ctrl\+C\.$/);
  });

  test("has one address per line if the terminal is narrow", () => {
    const urls = ["http://localhost:5280/files/", "https://localhost:5281/files/"];
    assert.match(shown({ apps: [app("files", ...urls)] }, 50), /^ {2}files {2}http:\S+\n {9}https:\S+$/m);
  });
});

test("run --port serves on that port, and --quiet prints nothing", async () => {
  const module = `export default (module) => module.provides("http", { route: { GET: () => "hello" } });
    export const depends = ["http"];`;
  await using program = await Program.in({ "mod_hello.js": module });
  const { started, kill, ended } = await program.serve(["mod_hello.js", "--port", "0"], { MODHOST_HTTP_PORTS: "1" });
  assert.ok(Number(started.ports[0]?.port) > 1);
  kill("SIGTERM");
  await ended;
  const quiet = await program.run(["mod_hello.js", "--quiet", "--port", "99999"]);
  assert.deepEqual([quiet.code, quiet.stdout], [1, ""]);
});
