import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ran } from "./called.ts";

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "modhost-help-"));
});
after(() => rm(folder, { recursive: true }));

/** Returns the standard output of a command. */
async function does(words: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await ran(folder, words);
  assert.deepEqual([code, stderr], [0, ""], words.join(" "));
  return stdout;
}

for (const [words, same] of [
  [["help"], ["--help"]],
  [
    ["help", "check"],
    ["check", "--help"],
  ],
  [
    ["help", "rpc"],
    ["rpc", "--help"],
  ],
  [
    ["help", "node"],
    ["node", "--help"],
  ],
  [
    ["help", "node", "add"],
    ["node", "add", "--help"],
  ],
] as const) {
  test(`modhost ${words.join(" ")} prints the same as modhost ${same.join(" ")}`, async () => {
    assert.equal(await does(words), await does(same));
  });
}

test("modhost --help lists the command help", async () => {
  assert.match(await does(["--help"]), /^ {2}help \[COMMAND\] /m);
});

test("help for an unknown command is wrong usage", async () => {
  const { code, stderr } = await ran(folder, ["help", "chekc"]);
  assert.equal(code, 2);
  assert.match(stderr, /no command or file chekc: did you mean check\?/);
});
