/**
 * Tests every code block of the README, the guides and the reference. Modules are loaded and get
 * the requests that the page shows, tests run, other code is compiled, configurations are
 * validated, and commands are looked up. Blocks that show a signature are marked `typescript`, and
 * belong to no example.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { sections } from "#config/build/generate.ts";
import { loadConfig } from "#core/config/index.ts";
import { createTestHost } from "#core/testing/index.ts";
import type { OptionDeclarations } from "#core/types.ts";
import { type Block, blocksOf, positionOf } from "./blocks.ts";
import { project, typeErrors } from "./guides/support.ts";
import { moduleNameOf, type Script, scriptOf } from "./scripts.ts";
import { type Curl, curlLines, shellFaults } from "./shell.ts";

const run = promisify(execFile);
const folder = await mkdtemp(join(tmpdir(), "modhost-docs-"));
after(() => rm(folder, { recursive: true, force: true }));

const pages = ["README.md", "CONTRIBUTING.md"];
for (const part of [
  "docs/contributing",
  "docs/guides",
  "docs/guides/deploy",
  "docs/guides/extend",
  "docs/guides/migrate-from-prosody",
  "docs/guides/gateway",
  "docs/guides/module",
  "docs/guides/operate",
  "docs/reference",
]) {
  const names = await readdir(join(project, part));
  pages.push(...names.filter((name) => name.endsWith(".md")).map((name) => `${part}/${name}`));
}
const texts = await Promise.all(pages.map((page) => readFile(join(project, page), "utf8")));
const blocks = pages
  .flatMap((page, at) => blocksOf(page, texts[at] ?? ""))
  .filter(({ language }) => language !== "typescript");
const shown = blocks.filter(({ skip }) => skip === undefined);
const inLanguage = (...languages: string[]) => shown.filter(({ language }) => languages.includes(language));

/**
 * A script and the path of its file. The files of a page are in one folder, unless the page shows
 * the same file a second time.
 */
interface Placed extends Script {
  readonly path: string;
}

const scripts = await writeScripts(inLanguage("ts", "js").map(scriptOf));
const packages = JSON.parse(await readFile(join(project, "package.json"), "utf8")) as { scripts: object };

async function writeScripts(all: readonly Script[]): Promise<Placed[]> {
  const placed: Placed[] = [];
  for (const script of all) {
    const base = join(folder, script.block.page.replaceAll(/\W/g, "_"));
    let path = join(base, script.file);
    for (let turn = 2; placed.some((other) => other.path === path); turn += 1)
      path = join(`${base}_${turn}`, script.file);
    placed.push({ ...script, path });
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, script.code);
  }
  await writeFile(join(folder, "package.json"), '{ "type": "module" }\n');
  await mkdir(join(folder, "node_modules"));
  await symlink(project, join(folder, "node_modules", "modhost"));
  return placed;
}

/** Returns the requests that a page makes to its host between a module and the next one. */
function requestsOf({ block, file }: Placed): Curl[] {
  const later = shown.filter(({ page, line }) => page === block.page && line > block.line);
  const end = scripts.find(
    ({ kind, block: { page, line } }) => kind === "module" && page === block.page && line > block.line,
  );
  const near = later.filter(({ line, language }) => language === "sh" && line < (end?.block.line ?? Infinity));
  const app = moduleNameOf(file).replace(/^http_/, "");
  return near.flatMap(({ code }) => curlLines(code)).filter(({ path }) => path.split(/[/?]/)[1] === app);
}

describe("modules that the pages show", () => {
  const modules = scripts.filter(({ kind }) => kind === "module");
  test("exist", () => assert.ok(modules.length > 1));

  for (const script of modules) {
    const requests = requestsOf(script);
    const outcome = requests.length === 0 ? "loads" : `loads and responds to ${requests.length} requests`;
    test(`${positionOf(script.block)} ${script.file} ${outcome}`, async () => {
      await using server = await createTestHost({ modules: [script.path], config: { https_ports: [0] } });
      assert.deepEqual(
        server.host.modules().filter(({ status }) => status !== "loaded"),
        [],
      );
      const ports = Object.fromEntries(server.host.listening().map(({ scheme, port }) => [scheme, port]));
      for (const { line, comment } of requests) {
        const command = line
          .replace(/https:\/\/localhost:5281/g, `https://localhost:${ports.https}`)
          .replace(/http:\/\/localhost:5280/g, `http://127.0.0.1:${ports.http}`)
          .replace(/^curl /, 'curl -sS --max-time 10 -w "%{stderr}%{http_code}" ');
        const { stdout, stderr } = await run("sh", ["-c", command], { cwd: dirname(script.path) });
        if (comment === "") assert.ok(Number(stderr.slice(-3)) < 400, `${line}: ${stderr} ${stdout}`);
        else assert.ok(`${stderr} ${stdout}`.includes(comment), `${line}: the response is ${stderr} ${stdout}`);
      }
    });
  }
});

describe("programs of tests that the pages show", () => {
  for (const { block, path } of scripts.filter(({ kind }) => kind === "test")) {
    test(`${positionOf(block)} passes`, async () => {
      const { NODE_TEST_CONTEXT: _own, ...env } = process.env;
      const program = run(process.execPath, ["--conditions=source", "--test", path], { cwd: dirname(path), env });
      await program.catch(({ stdout }: { stdout: string }) => assert.fail(stdout));
    });
  }
});

test("the TypeScript code on the pages compiles", () => {
  const typed = scripts.filter(({ path }) => path.endsWith(".ts"));
  assert.ok(typed.length > 10);
  const errors = typeErrors(typed.map(({ path }) => path));
  const onPage = errors.map((error) => {
    const [, path, line, message] = /^(.*?):(\d+): (.*)$/s.exec(error) ?? [];
    const block = typed.find((script) => script.path === path)?.block;
    return block === undefined ? error : `${block.page}:${block.line + Number(line) - 1}: ${message}`;
  });
  assert.deepEqual(onPage, []);
});

describe("configurations that the pages show", () => {
  for (const block of inLanguage("yaml")) {
    test(`${positionOf(block)} is valid`, async () => {
      const configFolder = await mkdtemp(join(folder, "config-"));
      await writeFile(join(configFolder, "modhost.config.yaml"), block.code);
      const config = await loadConfig({ cwd: configFolder, env: {} });
      for (const { owner, options } of await sections()) config.declare(options, owner);
      for (const [name, options] of await ownOptions(block)) config.declare(options, name);
      config.check();
      assert.deepEqual(config.unknownNames(), []);
    });
  }

  /**
   * Returns the options of the modules on the same page. If a module is shown several times, its
   * last version counts.
   */
  async function ownOptions({ page }: Block): Promise<Map<string, OptionDeclarations>> {
    const own = new Map<string, OptionDeclarations>();
    for (const { path, file } of scripts.filter(({ kind, block }) => kind === "module" && block.page === page)) {
      const exported = (await import(pathToFileURL(path).href)) as Record<string, { options?: OptionDeclarations }>;
      const options = exported.options ?? exported.default?.options;
      if (options !== undefined) own.set(moduleNameOf(file), options as OptionDeclarations);
    }
    return own;
  }
});

describe("commands that the pages show", () => {
  for (const block of inLanguage("sh")) {
    test(`${positionOf(block)} exist`, async () => {
      assert.deepEqual(await shellFaults(block.code, Object.keys(packages.scripts)), []);
    });
  }
});

describe("JSON that the pages show", () => {
  for (const block of inLanguage("json")) {
    test(`${positionOf(block)} is JSON`, () => void JSON.parse(block.code));
  }
});

test("a skipped block states the reason", (t) => {
  const left = blocks.filter(({ skip }) => skip !== undefined);
  t.diagnostic(`${left.length} of ${blocks.length} blocks are skipped`);
  for (const block of left) assert.match(block.skip ?? "", /\w+ \w+/, positionOf(block));
});
