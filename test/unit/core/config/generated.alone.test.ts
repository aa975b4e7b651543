import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { generate, sections } from "#config/build/generate.ts";
import { type Config, loadConfig } from "#core/config/index.ts";

const root = new URL("../../../../", import.meta.url);
const folder = await mkdtemp(join(tmpdir(), "modhost-sample-"));
after(() => rm(folder, { recursive: true }));

const all = await sections();
const generated = await generate();
const names = all.flatMap(({ options }) => Object.keys(options));
const sample = await readFile(new URL("config/modhost.config.sample.yaml", root), "utf8");

async function load(text: string): Promise<Config> {
  await writeFile(join(folder, "modhost.config.yaml"), text);
  const config = await loadConfig({ cwd: folder, env: {} });
  for (const { owner, options } of all) config.declare(options, owner);
  return config;
}

describe("the generated files", () => {
  for (const [path, content] of generated) {
    test(`${path} matches the declarations (else: npm run generate)`, async () => {
      assert.equal(await readFile(new URL(path, root), "utf8"), content);
    });
  }

  test("no option is declared twice", () => {
    assert.deepEqual(names, [...new Set(names)]);
  });
});

describe("the sample configuration", () => {
  test("is valid as it is, and sets nothing", async () => {
    const config = await load(sample);
    config.check();
    for (const name of names) assert.equal(config.raw(name), undefined, name);
  });

  test("is valid with every line uncommented, and sets every option and no other", async () => {
    const config = await load(sample.replaceAll(/^#(?=\w)/gm, ""));
    config.check();
    assert.deepEqual(config.unknownNames(), []);
    for (const name of names) assert.notEqual(config.raw(name), undefined, name);
  });

  test("shows the defaults", async () => {
    const config = await load(sample.replaceAll(/^#(?=\w)/gm, ""));
    for (const { options } of all) {
      for (const [name, option] of Object.entries(options)) {
        if (option.default !== undefined && option.example === undefined) {
          assert.deepEqual(config.raw(name), option.default, name);
        }
      }
    }
  });
});

describe("the JSON Schema", () => {
  test("names every option, and below hosts those that a host may have", async () => {
    const schema = JSON.parse(await readFile(new URL("config/modhost.schema.json", root), "utf8"));
    assert.deepEqual(Object.keys(schema.properties).sort(), [...names].sort());
    assert.ok("http_paths" in schema.$defs.host.properties);
    assert.ok(!("http_ports" in schema.$defs.host.properties));
  });
});
