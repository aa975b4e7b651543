/** Tests the parts of the check of the examples, on pages that are made for that. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type Block, blocksOf } from "./blocks.ts";
import { typeErrors } from "./guides/support.ts";
import { moduleNameOf, scriptOf } from "./scripts.ts";
import { curlLines, shellFaults } from "./shell.ts";

const fenced = (language: string, code: string) => `\`\`\`${language}\n${code}\n\`\`\`\n`;
const only = (text: string): Block => blocksOf("page.md", text)[0]!;

describe("blocks", () => {
  test("have a language, code, a line and the text around them", () => {
    const [first, second] = blocksOf("page.md", `One\n\n${fenced("ts", "a;")}Two\n${fenced("sh", "b")}Three\n`);
    assert.deepEqual([first?.language, first?.code, first?.line, first?.before], ["ts", "a;\n", 4, "One\n\n"]);
    assert.deepEqual([second?.language, second?.code, second?.line], ["sh", "b\n", 8]);
    assert.deepEqual([first?.after, second?.after], ["\nTwo\n", "\nThree\n"]);
  });

  test("are skipped for a reason, or completed, by the comment right before them", () => {
    assert.equal(only(`<!-- example: skip needs a printer -->\n${fenced("ts", "a;")}`).skip, "needs a printer");
    assert.equal(only(`<!-- example: given let a: 1; -->\n${fenced("ts", "a;")}`).given, "let a: 1;");
    assert.equal(only(`<!-- example: skip it -->\n\nText\n${fenced("ts", "a;")}`).skip, undefined);
  });
});

describe("scripts", () => {
  const of = (code: string, text = "") => scriptOf(only(text + fenced("ts", code)));

  test("are modules with the name from the code, the text or the function", () => {
    assert.deepEqual(
      [of("// mod_a.ts\nexport default () => {};").kind, of("// mod_a.ts\nexport default 1;").file],
      ["module", "mod_a.ts"],
    );
    assert.equal(of("export default () => {};", "Save it as `mod_b.ts`:\n").file, "mod_b.ts");
    assert.equal(of("export default function c() {}").file, "mod_c.ts");
    assert.equal(moduleNameOf("mod_http_shop/index.ts"), "http_shop");
  });

  test("are tests, other files, or parts of a module", () => {
    assert.equal(of('import { test } from "node:test";').kind, "test");
    assert.equal(of("// modhost.config.ts\nexport default {};").kind, "file");
    assert.equal(of("module.hosts();").kind, "part");
  });

  test("that are parts compile as such, unless they have an error", async () => {
    const folder = await mkdtemp(join(tmpdir(), "modhost-checks-"));
    try {
      await writeFile(join(folder, "package.json"), '{ "type": "module" }');
      const right = ['"GET /a/*": (event, path) => path.length,', "module.log.info(event.request.path);"];
      const wrong = ['"GET /a": (event, path) => path.length,', "module.logs();", "missing;"];
      const files = [...right, ...wrong].map((code, at) => ({ path: join(folder, `${at}.ts`), code: of(code).code }));
      for (const { path, code } of files) await writeFile(path, code);
      const faulty = typeErrors(files.map(({ path }) => path)).map((error) => /(\d)\.ts:1:/.exec(error)?.[1]);
      assert.deepEqual([...new Set(faulty)], ["2", "3", "4"]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

describe("commands", () => {
  const faults = (line: string) => shellFaults(line, ["bench"]);

  test("that exist cause no finding", async () => {
    for (const line of [
      "npm ci && npm start     # serves",
      "npm start -- ./mod_hello.ts ./site",
      "npm run bench -- host",
      'npx modhost routes --explain "GET /hello/x"',
      "MODHOST_HTTP_PORTS=8080 modhost check --json",
      "node PATH/core/cli/launch.mjs run ./mod_notes.ts",
      "cd mod_notes && ls",
    ]) {
      assert.deepEqual(await faults(line), [], line);
    }
  });

  test("that do not exist cause a finding", async () => {
    for (const line of [
      "npm run nothing",
      "npm strat",
      "npx modhost routes --explian /x",
      "modhost check --port 8080",
      "modhost modules --some",
    ]) {
      assert.equal((await faults(line)).length, 1, line);
    }
  });

  test("that are not shell syntax are rejected", async () => {
    await assert.rejects(faults("echo 'open"));
  });

  test("with curl have a path and a comment", () => {
    assert.deepEqual(
      curlLines("curl -k https://localhost:5281/hello/a?b \\\n  -d c=d  # 200\ncurl http://example.org/\n"),
      [{ line: "curl -k https://localhost:5281/hello/a?b -d c=d", path: "/hello/a?b", comment: "200" }],
    );
  });
});
