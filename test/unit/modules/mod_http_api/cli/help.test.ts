import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { describe, test } from "node:test";
import { table } from "#modules/mod_http_api/commands/index.ts";
import { Sandbox } from "./support.ts";

describe("modhost node: help", () => {
  test("the help of modhost node lists every command and group once, under the headings of go-ipfs", async () => {
    await using sandbox = await Sandbox.make();
    const help = await sandbox.does(["--help"]);
    const headings = [...help.matchAll(/^([A-Z][a-z]+(?: [a-z]+)? commands):$/gm)].map(([, title]) => title);
    assert.deepEqual(headings, [
      "Basic commands",
      "Data structure commands",
      "Advanced commands",
      "Network commands",
      "Tool commands",
      "Other commands",
    ]);
    const names = [...help.matchAll(/^ {2}([a-z][a-z0-9]*)(?: [A-Z[].*?)?(?: {2}|$)/gm)].map(([, name]) => name ?? "");
    const wanted = ["init", "daemon", "migrate", ...table.root.children.keys()];
    assert.deepEqual(names.sort(), wanted.sort());
    assert.match(help, /^Basic commands:\n {2}init .*\n {2}add PATH\.\.\. /m);
  });

  test("the help of modhost node is the same for help, for --help, and without any word", async () => {
    await using sandbox = await Sandbox.make();
    const help = await sandbox.does(["help"]);
    assert.equal(help, await sandbox.does(["--help"]));
    assert.equal(help, await sandbox.does([]));
  });

  for (const [words, same, first] of [
    [["help", "add"], ["add", "--help"], /^Usage: modhost node add PATH\.\.\. \[OPTIONS\]\n/],
    [["help", "files"], ["files", "--help"], /^Usage: modhost node files COMMAND/],
    [["help", "pin", "ls"], ["pin", "ls", "-h"], /^Usage: modhost node pin ls /],
    [["help", "init"], ["init", "--help"], /^Usage: modhost node init /],
    [["--offline", "help", "cat"], ["cat", "--help"], /^Usage: modhost node cat /],
  ] as const) {
    test(`${words.join(" ")} equals ${same.join(" ")}, and needs no repo`, async () => {
      await using sandbox = await Sandbox.make();
      const help = await sandbox.does(words);
      assert.match(help, first);
      assert.equal(help, await sandbox.does(same));
      assert.deepEqual(await readdir(sandbox.folder), []);
    });
  }

  test("the help on an unknown command is refused with the nearest known one", async () => {
    await using sandbox = await Sandbox.make();
    const { code, stderr } = await sandbox.node(["help", "catt"]);
    assert.deepEqual([code, stderr], [1, "Error: There is no command catt: did you mean cat?\n"]);
  });
});
