import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { createTestHost } from "#core/testing/index.ts";
import { project, readGuide, shownFiles, writeFiles } from "./support.ts";

const run = promisify(execFile);
const guide = await readGuide("use-the-node");
const files = shownFiles(guide);

describe("programs of the guide to the node print what it shows", () => {
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "modhost-guide-"));
    await writeFiles(folder, files);
    await mkdir(join(folder, "node_modules"));
    await symlink(project, join(folder, "node_modules", "modhost"));
  });
  after(() => rm(folder, { recursive: true }));

  test("two of them", () => assert.equal(files.length, 2));

  for (const { name } of files) {
    test(name, async () => {
      const [, wanted = ""] = /```text\n(.*?)```/s.exec(guide.slice(guide.indexOf(`// ${name}\n`))) ?? [];
      const { stdout } = await run(process.execPath, ["--conditions=source", name], { cwd: folder, timeout: 60_000 });
      assert.equal(stdout, wanted);
    });
  }
});

test("the module on the node of the other guide tells clients what is wrong", async (t) => {
  const shown =
    (await readGuide("write-a-module")).match(/```ts\n(import[^`]*? from "modhost\/node";\n.*?)```/s)?.[1] ?? "";
  const [, imports = "", body = ""] = /^((?:import [^\n]*\n)+)(.*)$/s.exec(shown) ?? [];
  const folder = await mkdtemp(join(tmpdir(), "modhost-guide-"));
  t.after(() => rm(folder, { recursive: true }));
  const code = `${imports}import type { Module } from "modhost";
    export default function notes(module: Module) { module.depends("http");${body}}`;
  await writeFiles(folder, [{ name: "mod_notes.ts", code }]);
  await using server = await createTestHost({
    modules: [join(folder, "mod_notes.ts")],
    config: { modules_enabled: ["http_api"], node_offline: true, data_path: join(folder, "data") },
  });
  const directory = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";
  const form = new FormData();
  form.append("file", new Blob(["Hello Worlds!\n"]));
  const { Hash } = (await (await server.fetch("/api/v0/add", { method: "POST", body: form })).json()) as {
    Hash: string;
  };
  const asked = async (path: string) => {
    const answer = await server.fetch(`/notes/of/${path}`);
    return [answer.status, answer.ok ? await answer.text() : ""];
  };
  assert.deepEqual(await asked(Hash), [200, "Hello Worlds!\n"]);
  assert.deepEqual(await asked(directory), [400, ""]);
  assert.deepEqual(await asked("foo"), [400, ""]);
  assert.deepEqual(await asked(`${directory}/nope`), [404, ""]);
  assert.deepEqual(await asked("QmdfTbBqBPQ7VNxZEYEj14VmRuZBkqFbiwReogJgS1zR1n"), [404, ""]);
});
