import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { scripts } from "#core/cli/completion/scripts.ts";
import { completionSites } from "#core/cli/completion/sites.ts";
import { everyCommand, globals } from "#core/cli/program.ts";
import { folderOf, pluginHost } from "#test/unit/core/module/support.ts";
import { ran } from "./called.ts";

let places: Awaited<ReturnType<typeof completionSites>>;
before(async () => {
  places = await completionSites(await everyCommand(), globals);
});
const wordsAt = (at: string) => places.get(at)?.words.map(({ word }) => word) ?? [];
const optionsAt = (at: string) => places.get(at)?.options.map(({ word }) => word) ?? [];

describe("the places of a command line", () => {
  test("are those of the tables of commands, of modules and of a node", async () => {
    assert.deepEqual(
      wordsAt(""),
      (await everyCommand()).map(({ name }) => name),
    );
    for (const before of ["node", "rpc"]) {
      assert.ok(wordsAt(before).includes("add"));
      assert.deepEqual(wordsAt(`${before} pin remote`), ["add", "ls", "rm", "service"]);
      assert.ok(optionsAt(`${before} pin ls`).includes("--type"));
      assert.ok(places.get(`${before} pin ls`)?.valued.includes("-t"));
    }
    assert.ok(wordsAt("node").includes("daemon"));
    assert.ok(optionsAt("node daemon").includes("--init"));
    assert.deepEqual(wordsAt("token"), ["new", "list", "revoke", "scopes"]);
  });

  test("have the options of every command, and of run where none is named", () => {
    for (const at of ["", "run", "status"]) assert.ok(optionsAt(at).includes("--no-color"), at);
    assert.ok(optionsAt("").includes("--port"));
    assert.equal(optionsAt("node add").includes("--json"), false);
  });
});

describe("the scripts", () => {
  test("are taken by their shells", async (t) => {
    const folder = await folderOf(t, {});
    for (const [shell, script] of Object.entries(scripts)) {
      const file = join(folder, shell);
      await writeFile(file, script(places));
      const { error, status, stderr } = spawnSync(shell, ["-n", file], { encoding: "utf8" });
      // Of those that this machine has.
      if (error === undefined) assert.equal(status, 0, `${shell}: ${stderr}`);
    }
  });

  test("complete the value of an option by names that a server tells, also where it is the second word of two", async (t) => {
    const modhost = '#!/bin/sh\n[ "$*" = "completion names routes" ] && echo /notes/ && echo /files/\n';
    const folder = await folderOf(t, { script: scripts.bash?.(places) ?? "", modhost });
    await chmod(join(folder, "modhost"), 0o755);
    const complete = (...words: string[]) => {
      const code = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _modhost; echo "$COMPREPLY"';
      const args = ["--norc", "-c", code, join(folder, "script"), join(folder, "modhost"), ...words];
      return spawnSync("bash", args, { encoding: "utf8" }).stdout.trim();
    };
    assert.equal(complete("routes", "--explain", "/no"), "/notes/");
    assert.equal(complete("routes", "--explain", "GET", "/fi"), "/files/");
    assert.equal(complete("routes", "--host", "/no"), "");
    assert.equal(complete("routes", "--explain", "/x", "--hos"), "--host");
  });

  test("complete commands, options and words behind options with values", async (t) => {
    const folder = await folderOf(t, { script: scripts.bash?.(places) ?? "" });
    const complete = (...words: string[]) => {
      const code = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _modhost; echo "$COMPREPLY"';
      const { stdout } = spawnSync("bash", ["--norc", "-c", code, join(folder, "script"), ...words], {
        encoding: "utf8",
      });
      return stdout.trim();
    };
    assert.equal(complete("modhost", "relo"), "reload");
    assert.equal(complete("modhost", "--port", "80", "stat"), "status");
    assert.equal(complete("modhost", "--port", "stat"), "", "the value of an option is no command");
    assert.equal(complete("modhost", "rpc", "pin", "verif"), "verify");
    assert.equal(complete("modhost", "node", "pin", "ls", "--ty"), "--type");
  });
});

test("completion asks a running server for names, and prints none without one", async (t) => {
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
  const nowhere = await folderOf(t, { "modhost.config.json": "{}" });
  const none = await ran(nowhere, ["completion", "names", "tokens"]);
  assert.deepEqual([none.code, none.stdout, none.stderr], [0, "", ""]);
  assert.equal((await ran(nowhere, ["completion", "csh"])).code, 2);
});
