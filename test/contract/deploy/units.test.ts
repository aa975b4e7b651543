/**
 * Tests the units for systemd: systemd accepts them, they are hardened, and they name files of the
 * package.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { sections } from "#config/build/generate.ts";
import { coreOptions, loadConfig } from "#core/config/index.ts";
import { project } from "../docs/guides/support.ts";

const shipped = join(project, "config/deploy");
const folders = [".", "scale"];
const units = folders
  .flatMap((folder) => readdirSync(join(shipped, folder)).map((name) => join(folder, name)))
  .filter((name) => /\.(service|socket|timer)$/.test(name));
const services = units.filter((name) => name.endsWith(".service"));
const textOf = (name: string) => readFileSync(join(shipped, name), "utf8");

/** In tenths: a little below the limit that systemd-analyze calls OK. */
const MAX_EXPOSURE = 20;

const [version = "0"] = /\d+/.exec(String(spawnSync("systemd-analyze", ["--version"]).stdout)) ?? [];
/** The reason to leave out systemd's own checks, or false. */
const lacksChecks = Number(version) >= 250 ? false : "needs systemd-analyze of systemd 250 or later";

/** Returns the last value of each setting. */
const settingsOf = (text: string) =>
  new Map(Array.from(text.matchAll(/^(\w+)=(.*)$/gm), ([, name, value]) => [name, value]));

describe("systemd", () => {
  let root = "";
  before(async () => {
    root = await mkdtemp(join(tmpdir(), "modhost-units-"));
  });
  after(() => rm(root, { recursive: true }));

  test("accepts the units", { skip: lacksChecks }, async () => {
    // The programs are not installed at their paths here, so empty files replace them.
    for (const name of units) {
      const text = textOf(name).replaceAll(/^(Exec\w+=)(\S+)/gm, (_, key, path) => `${key}${join(root, path)}`);
      await writeFile(join(root, basename(name)), text);
      for (const [, path = ""] of text.matchAll(/^Exec\w+=(\S+)/gm)) {
        await mkdir(dirname(path), { recursive: true });
        await writeFile(path, "", { mode: 0o755 });
      }
    }
    const files = units.map((name) => join(root, basename(name)));
    const { status, stderr } = spawnSync("systemd-analyze", ["verify", "--man=no", ...files]);
    assert.deepEqual([String(stderr), status], ["", 0]);
  });

  for (const name of services) {
    test(`finds ${name} hardened`, { skip: lacksChecks }, () => {
      const args = ["security", "--offline=true", `--threshold=${MAX_EXPOSURE}`, "--no-pager", join(shipped, name)];
      const { status, stdout } = spawnSync("systemd-analyze", args);
      assert.equal(status, 0, String(stdout));
    });
  }
});

describe("the unit of the server", () => {
  const settings = settingsOf(textOf("modhost.service"));
  const start = settings.get("ExecStart") ?? "";

  test("starts what the package has", () => {
    const [, program = ""] = /node_modules\/modhost\/(\S+\.mjs)/.exec(start) ?? [];
    assert.ok(readFileSync(join(project, program), "utf8").startsWith("#!/usr/bin/env node"));
  });

  test("waits longer for the server's end than the server needs by default", () => {
    const own = coreOptions.stop_delay.default + coreOptions.stop_timeout.default;
    assert.ok(Number(settings.get("TimeoutStopSec")) > own);
  });

  test("allows memory that is writable and executable, because V8 compiles into it", () => {
    assert.equal(settings.has("MemoryDenyWriteExecute"), false);
  });

  test("allows the calls of Landlock, without which no module is sandboxed", () => {
    const filters = Array.from(textOf("modhost.service").matchAll(/^SystemCallFilter=(.*)$/gm), ([, value]) => value);
    assert.equal(filters.at(-1), "landlock_create_ruleset landlock_add_rule landlock_restrict_self");
  });

  test("lets the server divide its cgroup for its sandboxes, and write to it", () => {
    assert.equal(settings.get("Delegate"), "yes");
    assert.equal(settings.get("ProtectControlGroups"), "no");
  });

  test("lets the server write to the folders that its config file names", async () => {
    const config = await loadConfig({ path: join(shipped, "modhost.config.yaml"), cwd: shipped, env: {} });
    for (const { owner, options } of await sections()) config.declare(options, owner);
    config.check();
    assert.deepEqual(config.unknownNames(), []);
    assert.equal(config.value("data_path"), `/var/lib/${settings.get("StateDirectory")}`);
    assert.equal(`-${config.value("backup_to")}`, settings.get("ReadWritePaths"));
    for (const name of ["log_file", "http_log_file"])
      assert.equal(dirname(String(config.value(name))), `/var/log/${settings.get("LogsDirectory")}`);
  });
});

describe("the image", () => {
  const text = textOf("Dockerfile");
  const last = text.slice(text.lastIndexOf("\nFROM "));

  test("is based on images without the name of a registry, and runs as a numeric user", () => {
    for (const [, image = ""] of text.matchAll(/^(?:FROM |ARG NODE=)(\S+)/gm)) {
      assert.match(image, /^(?:[a-z]+:[\w-]+|\$\{NODE\})$/);
    }
    assert.match(last, /^USER [1-9]\d*:[1-9]\d*$/m);
  });

  test("starts Node.js itself, so that signals reach the server", () => {
    const [, words = "[]"] = /^ENTRYPOINT (.*)$/m.exec(last) ?? [];
    assert.equal(JSON.parse(words)[0], "node");
    assert.doesNotMatch(last, /\bnpm (?:ci|install|start|run)\b/);
  });

  const context = Array.from(
    readFileSync(join(project, ".dockerignore"), "utf8").matchAll(/^!(\S+)$/gm),
    ([, path = ""]) => path,
  );

  test("is built from files in its context", () => {
    for (const path of context) assert.ok(existsSync(join(project, path)), path);
  });

  test("has the files in its context that the scripts of its build start", () => {
    const { scripts } = JSON.parse(readFileSync(join(project, "package.json"), "utf8")) as {
      scripts: Record<string, string>;
    };
    const started = Array.from(text.matchAll(/\bnpm run (\w+)/g), ([, name = ""]) => scripts[name] ?? "").flatMap(
      (script) => Array.from(script.matchAll(/\bnode (\S+)/g), ([, file = ""]) => file),
    );
    assert.ok(started.length > 0);
    for (const file of started) assert.ok(context.includes(file.split("/")[0] ?? ""), file);
  });
});
