/**
 * Tests that the pictures in docs/contributing/architecture.md show every folder of the tree, and
 * that each folder has a README.
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../", import.meta.url));

/** Each folder in these folders has a README. */
const withReadmes = ["core", "core/http", "modules", "modules/mod_node", "config"];
const pictured = [...withReadmes, "test"];

/**
 * Returns the folders that a page shows, by the folder that the first line of each picture names.
 */
function shownIn(page: string): Map<string, Set<string>> {
  const pictures = page.matchAll(/^```\n([\w/]+)\/ {2}.*\n([\s\S]*?)^```$/gm);
  return new Map(
    Array.from(pictures, ([, folder = "", picture = ""]) => {
      const rooms = Array.from(picture.matchAll(/(?<![\w/])(\w+)\/(?!\w)/g), ([, room = ""]) => room);
      return [folder, new Set(rooms)];
    }),
  );
}

function foldersIn(path: string): string[] {
  const entries = readdirSync(path, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

/**
 * Returns a sentence for each difference between the pictures and the tree, and for each folder
 * without a README.
 */
function faultsIn(tree: string, page: string): string[] {
  const shown = shownIn(page);
  return pictured.flatMap((folder) => {
    const picture = shown.get(folder);
    if (picture === undefined) return [`${folder}/ has no picture`];
    const rooms = new Set(foldersIn(join(tree, folder)));
    const isBare = (room: string) => withReadmes.includes(folder) && !existsSync(join(tree, folder, room, "README.md"));
    return [
      ...[...rooms.difference(picture)].map((room) => `the picture of ${folder}/ lacks ${room}/`),
      ...[...picture.difference(rooms)].map((room) => `the picture of ${folder}/ shows ${room}/, which does not exist`),
      ...[...rooms].filter(isBare).map((room) => `${folder}/${room}/ has no README.md`),
    ];
  });
}

test("the page about the architecture shows the folders of the tree, and each of them has a README", () => {
  assert.deepEqual(faultsIn(root, readFileSync(join(root, "docs/contributing/architecture.md"), "utf8")), []);
});

test("the top level has only the expected folders", () => {
  const ignored = /^(?:\..*|data|dist|node_modules|declarations-.*)$/;
  const folders = foldersIn(root).filter((name) => !ignored.test(name));
  assert.deepEqual(folders.sort(), ["config", "core", "docs", "modules", "test"]);
});

test("a folder that a picture lacks, one that does not exist and one without a README are found", async () => {
  const tree = await mkdtemp(join(tmpdir(), "modhost-rooms-"));
  try {
    for (const room of ["core/http/files", "modules/mod_node/api", "config/build", "test/unit"]) {
      await mkdir(join(tree, room), { recursive: true });
    }
    for (const room of ["core/http", "modules/mod_node", "modules/mod_node/api", "config/build"]) {
      await writeFile(join(tree, room, "README.md"), "# A room\n");
    }
    const pictures = ["core/  a\n│ http/ b │", "core/http/  a\n│ sse/ b │", "modules/  a\n│ mod_node/ │", "config/  a"];
    const page = [...pictures, "test/  a\n  unit/  b"].map((picture) => `\`\`\`\n${picture}\n\`\`\`\n`).join("\n");
    assert.deepEqual(faultsIn(tree, page), [
      "the picture of core/http/ lacks files/",
      "the picture of core/http/ shows sse/, which does not exist",
      "core/http/files/ has no README.md",
      "modules/mod_node/ has no picture",
      "the picture of config/ lacks build/",
    ]);
  } finally {
    await rm(tree, { recursive: true });
  }
});
