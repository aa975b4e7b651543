import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, describe, type TestContext, test } from "node:test";
import { scripts } from "#core/cli/completion/scripts.ts";
import { completionSites } from "#core/cli/completion/sites.ts";
import { everyCommand, globals } from "#core/cli/program.ts";
import { folderOf, pluginHost } from "#test/unit/core/module/support.ts";
import { ran } from "./called.ts";

let sites: Awaited<ReturnType<typeof completionSites>>;
before(async () => {
  sites = await completionSites(await everyCommand(), globals);
});
const wordsAt = (at: string) => sites.get(at)?.words.map(({ word }) => word) ?? [];
const optionsAt = (at: string) => sites.get(at)?.options.map(({ word }) => word) ?? [];

describe("the completion sites of a command line", () => {
  test("offer the commands of the program, of modules and of a node", async () => {
    assert.deepEqual(
      wordsAt(""),
      (await everyCommand()).map(({ name }) => name),
    );
    for (const before of ["node", "rpc"]) {
      assert.ok(wordsAt(before).includes("add"));
      assert.deepEqual(wordsAt(`${before} pin remote`), ["add", "ls", "rm", "service"]);
      assert.ok(optionsAt(`${before} pin ls`).includes("--type"));
      assert.ok(sites.get(`${before} pin ls`)?.valued.includes("-t"));
    }
    assert.ok(wordsAt("node").includes("daemon"));
    assert.ok(optionsAt("node daemon").includes("--init"));
    assert.deepEqual(wordsAt("token"), ["new", "list", "revoke", "scopes"]);
  });

  test("offer the options of every command, and those of run if no command is named", () => {
    for (const at of ["", "run", "status"]) assert.ok(optionsAt(at).includes("--no-color"), at);
    assert.ok(optionsAt("").includes("--port"));
    assert.equal(optionsAt("node add").includes("--json"), false);
  });
});

/**
 * Returns a function that completes a command line of modhost with the Bash script, and returns the
 * completions. `names` are what the server would return; `line` is what was typed, if Bash splits
 * it into other words.
 */
async function bashWith(t: TestContext, names: Readonly<Record<string, readonly string[]>>, line = "") {
  const cases = Object.entries(names).map(
    ([kind, all]) => `${kind}) printf '%s\\n' ${all.map((name) => `'${name}'`).join(" ")} ;;`,
  );
  const modhost = `#!/bin/sh\n[ "$1 $2" = "completion names" ] || exit 1\ncase $3 in\n${cases.join("\n")}\nesac\n`;
  const folder = await folderOf(t, { script: scripts.bash?.(sites) ?? "", modhost });
  await chmod(join(folder, "modhost"), 0o755);
  const code = `source "$0"
    COMP_WORDS=("$@") COMP_CWORD=$(($#-1)) COMP_LINE=$LINE COMP_POINT=\${#LINE}
    _modhost
    echo "\${COMPREPLY[*]}"`;
  return (...words: string[]) => {
    const args = ["--norc", "-c", code, join(folder, "script"), join(folder, "modhost"), ...words];
    return spawnSync("bash", args, { encoding: "utf8", env: { ...process.env, LINE: line } }).stdout.trim();
  };
}

describe("a completion script", () => {
  test("is accepted by its shell", async (t) => {
    const folder = await folderOf(t, {});
    for (const [shell, script] of Object.entries(scripts)) {
      const file = join(folder, shell);
      await writeFile(file, script(sites));
      const { error, status, stderr } = spawnSync(shell, ["-n", file], { encoding: "utf8" });
      // Shells that this machine lacks are skipped.
      if (error === undefined) assert.equal(status, 0, `${shell}: ${stderr}`);
    }
  });

  test("completes the value of an option with names from the server, also as the second of two words", async (t) => {
    const complete = await bashWith(t, { routes: ["/notes/", "/files/"] });
    assert.equal(complete("routes", "--explain", "/no"), "/notes/");
    assert.equal(complete("routes", "--explain", "GET", "/fi"), "/files/");
    assert.equal(complete("routes", "--host", "/no"), "");
    assert.equal(complete("routes", "--explain", "/x", "--hos"), "--host");
  });

  test("completes the scopes of a new token behind its name, and the tokens to revoke", async (t) => {
    const complete = await bashWith(t, { scopes: ["app:", "admin", "admin:read", "*"], tokens: ["ci", "deploy"] });
    assert.equal(complete("token", "ne"), "new");
    assert.equal(complete("token", "new", ""), "", "the name of the new token");
    assert.equal(complete("token", "new", "ci", "ap"), "app:");
    assert.equal(complete("token", "new", "--rate", "10/s", "ci", "app:chat", "admin:"), "admin:read");
    assert.equal(complete("token", "new", "ci", ""), "app: admin admin:read \\*", "a shell would expand the star");
    assert.equal(complete("token", "new", "ci", "--bu"), "--burst");
    assert.equal(complete("token", "revoke", "de"), "deploy");
    assert.equal(complete("token", "list", ""), "");
  });

  test("completes scopes where Bash splits a word at its colons", async (t) => {
    const complete = await bashWith(t, { scopes: ["admin:read", "rpc:", "rpc:pin"] }, "token new ci rpc:p");
    assert.equal(complete("token", "new", "ci", "rpc", ":", "p"), "pin");
  });

  test("offers names unchanged, even if they look like a command of the shell", async (t) => {
    const complete = await bashWith(t, { routes: ["/$(echo run)/"] });
    assert.equal(complete("routes", "--explain", "/"), "/\\$\\(echo\\ run\\)/");
  });

  test("completes commands, options and words behind options with values", async (t) => {
    const complete = await bashWith(t, {});
    assert.equal(complete("relo"), "reload");
    assert.equal(complete("--port", "80", "stat"), "status");
    assert.equal(complete("--port", "stat"), "", "the value of an option is no command");
    assert.equal(complete("rpc", "pin", "verif"), "verify");
    assert.equal(complete("node", "pin", "ls", "--ty"), "--type");
  });
});

test("completion prints the names that a running server returns, and nothing without a server", async (t) => {
  const module = "export default (module) => {};";
  const config = { modules_enabled: ["http_admin", "one"], plugin_autoload: false };
  const { folder } = await pluginHost(t, { "mod_one.js": module }, config);
  const cwd = await folderOf(t, { "modhost.config.json": JSON.stringify({ data_path: folder }) });
  const { stdout } = await ran(cwd, ["completion", "names", "modules"]);
  assert.deepEqual(
    stdout
      .split("\n")
      .filter((name) => name === "one" || name === "http_admin")
      .sort(),
    ["http_admin", "one"],
  );
  assert.match((await ran(cwd, ["completion", "names", "routes"])).stdout, /^\/admin/m);
  const scopes = (await ran(cwd, ["completion", "names", "scopes"])).stdout.trim().split("\n");
  assert.deepEqual(scopes, ["app:", "admin", "admin:read", "*"]);
  const nowhere = await folderOf(t, { "modhost.config.json": "{}" });
  const none = await ran(nowhere, ["completion", "names", "tokens"]);
  assert.deepEqual([none.code, none.stdout, none.stderr], [0, "", ""]);
  assert.equal((await ran(nowhere, ["completion", "csh"])).code, 2);
});
