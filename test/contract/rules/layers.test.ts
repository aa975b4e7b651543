/**
 * Tests that each layer rule finds imports that break it, in a tree that contains only such
 * imports.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, globSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type Import, type Sample, samples } from "./samples.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const { forbidden } = createRequire(import.meta.url)("../../../config/build/layers.cjs") as {
  readonly forbidden: readonly { readonly name: string }[];
};
const rules = forbidden.map(({ name }) => name);

/** The names of the rules that the files of a sample break, by those files. */
let broken: ReadonlyMap<string, ReadonlySet<string>>;
let folder: string;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "modhost-layers-"));
  for (const file of ["config/build/layers.cjs", "tsconfig.json", "package.json"]) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await copyFile(join(root, file), join(folder, file));
  }
  await symlink(join(root, "node_modules"), join(folder, "node_modules"));
  for (const [path, text] of allFiles()) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  broken = await cruise(folder);
});
after(() => rm(folder, { recursive: true, force: true }));

/** Returns the files that a sample adds, with their text. */
function filesOf(name: string, sample: Sample): [path: string, text: string][] {
  const file = (at: number | string) => `broken_${name.replaceAll("-", "_")}_${at}.ts`;
  const statement = (specifier: string) => `import ${sample.types ? "type " : ""}{ it } from "${specifier}";\nit;\n`;
  if ("circle" in sample) {
    const at = `${samples[name]?.indexOf(sample)}`;
    return [
      [join(sample.circle, file(`${at}a`)), `${statement(`./${file(`${at}b`)}`)}export const it = 1;\n`],
      [join(sample.circle, file(`${at}b`)), `${statement(`./${file(`${at}a`)}`)}export const it = 1;\n`],
    ];
  }
  const path = join(sample.from, file(samples[name]?.indexOf(sample) ?? 0));
  const specifier = isPackage(sample.to) ? sample.to : relative(sample.from, targetOf(sample)).replace(/^(?!\.)/, "./");
  return [[path, statement(specifier)]];
}

const isPackage = (name: string) => !/(\.ts|\/)$/.test(name);

/** Returns the imported file; for a folder, the first file directly in it. */
function targetOf({ to }: Import): string {
  if (!to.endsWith("/")) return to;
  const first = globSync("*.ts", { cwd: join(root, to) }).sort()[0];
  assert.ok(first !== undefined, `${to} contains no file`);
  return join(to, first);
}

/** Returns the files of all samples, and empty files for their imports. */
function allFiles(): Map<string, string> {
  const all = Object.entries(samples).flatMap(([name, list]) => list.map((sample) => ({ name, sample })));
  const targets = all.flatMap(({ sample }) => ("to" in sample && !isPackage(sample.to) ? [targetOf(sample)] : []));
  return new Map([
    ...targets.map((path) => [path, "export const it = 1;\n"] as const),
    ...all.flatMap(({ name, sample }) => filesOf(name, sample)),
  ]);
}

interface Cruised {
  readonly summary: {
    readonly violations: readonly { readonly from: string; readonly rule: { readonly name: string } }[];
  };
}

/** Runs the check of `npm run layers` in another folder. */
async function cruise(cwd: string): Promise<Map<string, Set<string>>> {
  const program = join(root, "node_modules/dependency-cruiser/bin/dependency-cruise.mjs");
  const args = [program, "--config", "config/build/layers.cjs", "--output-type", "json", "core", "modules"];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd, maxBuffer: 2 ** 26 });
  const found = new Map<string, Set<string>>();
  for (const { from, rule } of (JSON.parse(stdout) as Cruised).summary.violations) {
    found.set(from, (found.get(from) ?? new Set()).add(rule.name));
  }
  return found;
}

describe("the rule", () => {
  for (const name of rules) {
    test(`${name} reports the imports that break it, and no other rule does`, () => {
      const list = samples[name] ?? [];
      assert.ok(list.length > 0, `samples.ts has nothing that breaks ${name}`);
      for (const sample of list) {
        const reported = new Set(filesOf(name, sample).flatMap(([path]) => [...(broken.get(path) ?? [])]));
        assert.deepEqual([...reported], [name], JSON.stringify(sample));
      }
    });
  }
});

test("samples break existing rules, between existing files", () => {
  for (const [name, list] of Object.entries(samples)) {
    assert.ok(rules.includes(name), `the rule ${name} does not exist`);
    for (const sample of list) {
      if ("isNew" in sample) {
        assert.ok(!existsSync(join(root, sample.from)), `${name}: ${sample.from} is not new`);
        continue;
      }
      const paths =
        "circle" in sample ? [sample.circle] : isPackage(sample.to) ? [sample.from] : [sample.from, sample.to];
      for (const path of paths) assert.ok(existsSync(join(root, path)), `${name}: ${path} does not exist`);
    }
  }
});
