/** Calls of modules that would affect the process that all modules share. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Program } from "./spawned.ts";

const app = (name: string, code: string, imports = "") => `import process from "node:process";
import { exit } from "node:process";
${imports}
export default function ${name}(module) {
  module.provides("http", { route: { GET: () => "here", "GET /do": () => { ${code} } } });
}`;

const leaving = {
  exits: "process.exit(3)",
  imports: "exit(3)",
  aborts: "process.abort()",
  kills: 'process.kill(process.pid, "SIGKILL")',
  asks: "try { process.exit(3) } catch { return 'caught' }",
};

test("a module that ends the process, itself or by a library, is refused and quarantined, and the others are still served", async () => {
  const files: Record<string, string> = {
    "mod_hello.js": `export default (module) => module.provides("http", { route: { GET: () => "hello" } });`,
    "node_modules/quitter/package.json": JSON.stringify({ name: "quitter", type: "module", exports: "./index.js" }),
    "node_modules/quitter/index.js": "export const quit = () => process.exit(4);",
    "mod_library.mjs": app("library", "quit()", 'import { quit } from "quitter";'),
  };
  for (const [name, code] of Object.entries(leaving)) files[`mod_${name}.mjs`] = app(name, code);
  await using program = await Program.in(files);
  const { started, kill, ended } = await program.serve(
    Object.keys(files).filter((file) => file.startsWith("mod_")),
    {
      MODHOST_QUARANTINE_PAUSE: "600",
      MODHOST_MODULES_ENABLED: "http",
      MODHOST_HTTP_HIDE_ERRORS: "false",
    },
  );
  const urlOf = (name: string) => started.apps.find((one) => one.name === name)?.urls[0]?.replace(/\/$/, "") ?? "";
  for (const name of [...Object.keys(leaving), "library"]) {
    const response = await fetch(`${urlOf(name)}/do`);
    assert.equal(response.status, name === "asks" ? 200 : 500, name);
    let status = 200;
    while (status !== 503) ({ status } = await fetch(urlOf(name)));
  }
  assert.equal(await (await fetch(urlOf("hello"))).text(), "hello");
  kill("SIGTERM");
  const { stderr, code } = await ended;
  assert.equal(code, 0);
  const said = stderr.split("\n").flatMap((line) => (line.startsWith("{") ? [JSON.parse(line)] : []));
  const of = (name: string) => said.filter(({ module }) => module === name).map(({ msg }) => msg as string);
  assert.match(
    of("exits").join("\n"),
    /process\.exit\(3\) is refused .*would end all modules.*module\.stop_server\(\)/,
  );
  assert.match(of("exits").join("\n"), /is in quarantine for .*: it called process\.exit\(3\)/);
  assert.match(of("library").join("\n"), /is in quarantine for .*: it called process\.exit\(4\)/);
  assert.match(of("kills").join("\n"), /it called process\.kill\(\d+, SIGKILL\)/);
});

test("a module cannot change the working folder of the process, and may check whether the process exists", async () => {
  await using program = await Program.in({
    "mod_moves.mjs": app("moves", "process.kill(process.pid, 0); process.chdir('/'); return 'moved'"),
  });
  const { started, kill, ended } = await program.serve(["mod_moves.mjs"], { MODHOST_MODULES_ENABLED: "http" });
  const url = started.apps.find(({ name }) => name === "moves")?.urls[0]?.replace(/\/$/, "") ?? "";
  assert.equal((await fetch(`${url}/do`)).status, 500);
  assert.equal(await (await fetch(url)).text(), "here", "it stays");
  kill("SIGTERM");
  const { stderr, code } = await ended;
  assert.equal(code, 0);
  assert.match(
    stderr,
    /process\.chdir\(\/\) is refused .*would change the working folder of all modules.*absolute path/,
  );
});

test("code of no module can end the process, which is reported with its stack", async () => {
  await using program = await Program.in({
    "leave.cjs": "setInterval(() => globalThis.leaving && process.exit(3), 20);",
    "mod_hello.js": `export default (module) =>
      module.provides("http", { route: { GET: () => String((globalThis.leaving = true)) } });`,
    "modhost.config.js": `import "./leave.cjs"; export default { modules_enabled: ["http"] };`,
  });
  const { started, ended } = await program.serve(["run", "--config", "modhost.config.js", "./mod_hello.js"]);
  assert.equal(await (await fetch(started.apps.find(({ name }) => name === "hello")?.urls[0] ?? "")).text(), "true");
  const { stderr, code } = await ended;
  assert.equal(code, 3);
  const said = stderr.split("\n").find((line) => line.includes("process.exit(3) was called")) ?? stderr;
  assert.match(said, /"level":"error"/);
  assert.match(said, /leave\.cjs:\d+:\d+\)/);
});
