/** Commands and checks of modules that are not bundled. */
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { folderOf } from "#test/unit/core/module/support.ts";
import { ran } from "./called.ts";

const module = "export default () => {};\n";
const greeting = (name: string, text: string) => `
  import { UsageError } from "modhost/cli";
  export const command = {
    name: "${name}",
    help: "Print a greeting",
    arguments: "[NAME]",
    options: { loud: { type: "boolean", help: "In capitals" } },
    async run({ args: [name = "you"], options, output }) {
      if (name === "") throw new UsageError("The name is empty");
      const text = "${text} " + name;
      output.show(text, () => (options.loud ? text.toUpperCase() : text));
      return 5;
    },
  };
`;

/** Creates a folder with a configuration and these files. */
async function project(
  t: TestContext,
  files: Record<string, string>,
  config: object = { plugin_paths: ["./plugins"] },
) {
  const folder = await folderOf(t, { "modhost.config.json": JSON.stringify(config) });
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  return folder;
}

const run = (folder: string, ...words: string[]) => ran(folder, ["--no-json", ...words]);

describe("the command of a module that is not bundled", () => {
  test("runs from the folder of a module in plugin_paths, whether the module is enabled or not", async (t) => {
    const folder = await project(t, {
      "plugins/mod_greet/index.js": module,
      "plugins/mod_greet/cli/greet.js": greeting("greet", "Hello"),
    });
    assert.deepEqual(await run(folder, "greet", "anna"), { code: 5, stdout: "Hello anna\n", stderr: "" });
    assert.equal((await run(folder, "greet", "--loud")).stdout, "HELLO YOU\n");
    const { code, stderr } = await run(folder, "greet", "");
    assert.deepEqual([code, stderr], [2, "modhost: The name is empty\nTry modhost --help.\n"]);
  });

  test("runs from a module that the configuration names by its path, in TypeScript", async (t) => {
    const files = { "own/index.ts": module, "own/cli/greet-all.ts": greeting("greet-all", "Hello") };
    const folder = await project(t, files, { modules_enabled: ["./own"] });
    assert.equal((await run(folder, "greet-all")).stdout, "Hello you\n");
  });

  test("runs from an installed package, next to the entry that its manifest names", async (t) => {
    const files = {
      "node_modules/modhost-mod-greet/package.json": JSON.stringify({
        name: "modhost-mod-greet",
        type: "module",
        modhost: { kind: "module", entry: "./dist/index.js" },
      }),
      "node_modules/modhost-mod-greet/dist/index.js": module,
      "node_modules/modhost-mod-greet/dist/cli/greet.js": greeting("greet", "Hello"),
      "node_modules/modhost-mod-greet/dist/cli/greet.ts": "Node.js runs no TypeScript below node_modules",
    };
    const folder = await project(t, files, { modules_enabled: ["greet"] });
    assert.equal((await run(folder, "greet")).stdout, "Hello you\n");
  });

  test("is found by the configuration that --config names, before or after the command", async (t) => {
    const folder = await project(t, {
      "other/modhost.config.json": JSON.stringify({ modules_enabled: ["./own"] }),
      "other/own/index.js": module,
      "other/own/cli/greet.js": greeting("greet", "Hello"),
    });
    for (const words of [
      ["--config", "other/modhost.config.json", "greet"],
      ["greet", "--config=other/modhost.config.json"],
    ]) {
      assert.equal((await run(folder, ...words)).stdout, "Hello you\n");
    }
    assert.match((await run(folder, "greet")).stderr, /no command or file greet/);
  });

  test("is listed by --help, has its own --help, is completed, and is suggested for a similar word", async (t) => {
    const folder = await project(t, {
      "plugins/mod_greet/index.js": module,
      "plugins/mod_greet/cli/greet.js": greeting("greet", "Hello"),
    });
    assert.match(
      (await run(folder, "--help")).stdout,
      /^ {2}greet +A command of the module greet: modhost greet --help explains it$/m,
    );
    assert.match((await run(folder, "greet", "--help")).stdout, /^ +--loud +In capitals$/m);
    assert.match((await run(folder, "completion", "bash")).stdout, /\['\.greet'\]='--loud /);
    assert.match((await run(folder, "gret")).stderr, /no command or file gret: did you mean greet\?/);
  });

  test("does not exist if the module is disabled", async (t) => {
    const files = {
      "plugins/mod_greet/index.js": module,
      "plugins/mod_greet/cli/greet.js": greeting("greet", "Hello"),
    };
    const folder = await project(t, files, { plugin_paths: ["./plugins"], modules_disabled: ["greet"] });
    assert.match((await run(folder, "greet")).stderr, /no command or file greet/);
  });

  test("gives way to a file of the same name, which is served", async (t) => {
    const folder = await project(t, {
      "plugins/mod_greet/index.js": module,
      "plugins/mod_greet/cli/greet.js": greeting("greet", "Hello"),
      "greet/index.html": "<h1>Greetings</h1>",
    });
    assert.match((await run(folder, "greet", "--loud")).stderr, /^modhost: run has no option --loud/);
  });
});

describe("an invalid command file", () => {
  const wrong = {
    "plugins/mod_a/index.js": module,
    "plugins/mod_a/cli/broken.js": "import './nowhere.js';",
    "plugins/mod_a/cli/empty.js": "export const commands = [];",
    "plugins/mod_a/cli/named.js": greeting("other", "Hello"),
    "plugins/mod_a/cli/check.js": greeting("check", "Mine"),
    "plugins/mod_a/cli/status.js": greeting("status", "Mine"),
    "plugins/mod_a/cli/greet.js": greeting("greet", "First"),
    "plugins/mod_b/index.js": module,
    "plugins/mod_b/cli/greet.js": greeting("greet", "Second"),
  };

  test("adds a line to the output of completion that names the file and the remedy, and breaks nothing else", async (t) => {
    const folder = await project(t, wrong);
    const { code, stdout, stderr } = await run(folder, "completion", "bash");
    assert.equal(code, 0);
    assert.match(stdout, /\['\.greet'\]=/);
    const lines = stderr.replaceAll(`${folder}/plugins/`, "").trimEnd().split("\n").sort();
    for (const line of lines) assert.match(line, /: correct or rename the file, or disable the module$/);
    const texts = lines.map((line) => line.replace(/: correct or.*$/, ""));
    assert.match(
      texts.shift() ?? "",
      /^modhost: mod_a\/cli\/broken\.js of the module a contributes nothing: Cannot find /,
    );
    const [check, empty, named, status, greet] = [
      "modhost: mod_a/cli/check.js of the module a contributes nothing: modhost itself has a command check already",
      "modhost: mod_a/cli/empty.js of the module a contributes nothing: it exports no `command` with `help` and `run`",
      "modhost: mod_a/cli/named.js of the module a contributes nothing: its command has the name other, and the file has named",
      "modhost: mod_a/cli/status.js of the module a contributes nothing: the module http_admin has a command status already",
      "modhost: mod_b/cli/greet.js of the module b contributes nothing: the module a has a command greet already",
    ] as const;
    assert.deepEqual(texts, [check, empty, named, status, greet]);
    // Help imports none of the files, so it knows only of the names.
    const help = await run(folder, "--help");
    assert.equal(help.code, 0);
    assert.match(help.stdout, /^ {2}greet +A command of the module a: /m);
    const found = help.stderr.replaceAll(`${folder}/plugins/`, "").trimEnd().split("\n").sort();
    assert.deepEqual(
      found.map((line) => line.replace(/: correct or.*$/, "")),
      [check, status, greet],
    );
  });

  test("fails with the same sentence when its command is called, and replaces no command of modhost and bundled modules", async (t) => {
    const folder = await project(t, wrong);
    const { code, stderr } = await run(folder, "broken");
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^modhost: .*broken\.js of the module a contributes nothing: Cannot find .*: correct or rename/,
    );
    assert.equal((await run(folder, "greet")).stdout, "First you\n");
    assert.match((await run(folder, "status", "--help")).stdout, /--watch/);
  });

  test("is reported by modhost doctor as a problem", async (t) => {
    const folder = await project(t, wrong);
    const { stdout } = await ran(folder, ["doctor", "--json"]);
    const { checks } = JSON.parse(stdout) as { checks: { check: string; findings: { level: string }[] }[] };
    const findings = checks.find(({ check }) => check === "commands of modules")?.findings ?? [];
    assert.deepEqual(
      findings.map(({ level }) => level),
      Array.from({ length: 6 }, () => "problem"),
    );
  });
});

describe("code of a module that is not bundled", () => {
  /** Files that leave a mark next to themselves when they are evaluated. */
  const marking = (text: string) => `
    import { appendFileSync } from "node:fs";
    appendFileSync(new URL("../../../marks", import.meta.url), import.meta.url + "\\n");
    ${text}
  `;
  const files = {
    "plugins/mod_shop/cli/stock.js": marking(greeting("stock", "In stock:")),
    "plugins/mod_shop/cli/doctor.js": marking("export const checks = [];"),
  };
  const marks = async (folder: string) => {
    const text = await readFile(join(folder, "marks"), "utf8").catch(() => "");
    return text.split("\n").flatMap((line) => (line === "" ? [] : [line.replace(/^.*\//, "")]));
  };
  const shop = { ...files, "plugins/mod_shop/index.js": marking(module).replace("../../../", "../../") };

  test("does not run when somebody asks for help", async (t) => {
    const folder = await project(t, shop);
    for (const words of [["--help"], ["help"], ["-h", "--color"], ["nothing"]]) await run(folder, ...words);
    assert.match((await run(folder, "--help")).stdout, /^ {2}stock /m);
    assert.deepEqual(await marks(folder), []);
    // The marks are left where the file is evaluated.
    assert.equal((await run(folder, "stock", "shoes")).stdout, "In stock: shoes\n");
    assert.deepEqual(await marks(folder), ["stock.js"]);
  });

  test("does not run for any command if the module is sandboxed, and its own commands are refused with the reason", async (t) => {
    const config = { plugin_paths: ["./plugins"], modules: { shop: { run: "sandboxed" } } };
    const folder = await project(t, shop, config);
    assert.doesNotMatch((await run(folder, "--help")).stdout, /stock/);
    for (const words of [["completion", "bash"], ["doctor"], ["nothing"], ["check"]]) await run(folder, ...words);
    const refusal =
      "modhost: The command stock belongs to the module shop, which is sandboxed, and commands run with your rights: to allow it, set modules.shop.run to trusted\n";
    for (const words of [["stock"], ["stock", "--help"], ["help", "stock"]]) {
      assert.deepEqual(await run(folder, ...words), { code: 1, stdout: "", stderr: refusal });
    }
    assert.deepEqual(await marks(folder), []);
  });

  test("does not run for help if the configuration names the sandboxed module by its path", async (t) => {
    const own = { "plugins/own/index.js": module, "plugins/own/cli/stock.js": files["plugins/mod_shop/cli/stock.js"] };
    const config = { modules_enabled: ["./plugins/own"], modules: { own: { run: "sandboxed" } } };
    const folder = await project(t, own, config);
    assert.match((await run(folder, "stock")).stderr, /belongs to the module own, which is sandboxed/);
    assert.deepEqual(await marks(folder), []);
  });
});

test("a configuration that cannot be read adds a line to --help, and hides no command of bundled modules", async (t) => {
  const folder = await folderOf(t, { "modhost.config.json": "{" });
  const { code, stdout, stderr } = await run(folder, "--help");
  assert.equal(code, 0);
  assert.match(stdout, /^ {2}status /m);
  assert.match(
    stderr,
    /^modhost: The commands of configured modules are unknown: .*modhost\.config\.json.*: correct the configuration\n$/s,
  );
});

test("a module can contribute checks to modhost doctor without a command", async (t) => {
  const folder = await project(t, {
    "plugins/mod_notes/index.js": module,
    "plugins/mod_notes/cli/doctor.js": `
      import { warning } from "modhost/cli";
      export const checks = [{
        name: "notes",
        help: "The notes are fresh",
        run: ({ data }) => [warning("The notes in " + data + " are old", "write new ones")],
      }];
    `,
  });
  const { stdout, stderr } = await run(folder, "doctor");
  assert.equal(stderr, "");
  assert.match(stdout, /^warning +notes +The notes in .*data are old\n +→ write new ones$/m);
  const help = await run(folder, "--help");
  assert.deepEqual([help.code, help.stderr], [0, ""]);
});
