/** The command line at both levels of the API, with a daemon and without one. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Sandbox } from "./support.ts";

const hello = "QmZULkCELmmk5XNfCgTnCyFgAVxBRBXyDHGGMVoLFLiXEN";

for (const [level, version] of [
  ["0.9", "0.9.0"],
  ["0.43", "0.43.0"],
] as const) {
  const env = { MODHOST_API_LEVEL: level };

  /** The words of a command, its expected output, and its standard input. */
  const lines: readonly (readonly [words: readonly string[], prints: RegExp, stdin?: string])[] = [
    [["version"], new RegExp(`^ipfs version ${version}\n$`)],
    [["add", "-q"], new RegExp(`^${hello}\n$`), "hello\n"],
    [["cat", hello], /^hello\n$/],
    [["pin", "ls", "--type=recursive"], new RegExp(`^${hello} recursive\n`, "m")],
    [["block", "put", "--mhtype=sha2-256"], level === "0.9" ? /^Qm/ : /^bafkrei/, "a block\n"],
    [["dag", "put"], level === "0.9" ? /^bafyreia2b3rf/ : /^bafyreifa2oxz/, '{"b":2,"a":1}'],
    [["dag", "stat", hello], level === "0.9" ? /^Size: / : /Total Size|CID/],
    // Commands of the later level are served at both levels.
    [["multibase", "encode", "-b", "base16"], /^f68656c6c6f$/, "hello"],
    [["cid", "inspect", hello], /^CID: /],
    [["files", "mkdir", "/a"], /^$/],
    [["files", "touch", "--mtime=1", "/a"], /^$/],
    [["files", "stat", "/a"], /\nType: directory\n/],
    [["key", "ls"], /^self\n$/],
    [["commands"], level === "0.9" ? /^ipfs tar add$/m : /^ipfs multibase encode$/m],
  ];

  async function goesThrough(sandbox: Sandbox): Promise<void> {
    for (const [words, prints, stdin] of lines) {
      const { code, stdout, stderr } = await sandbox.node(words, { env, ...(stdin !== undefined && { stdin }) });
      assert.equal(code, 0, `${words.join(" ")}: ${stderr}`);
      assert.match(stdout, prints, words.join(" "));
    }
  }

  describe(`modhost node at the level ${level}`, () => {
    test("every command works with a daemon", async () => {
      await using sandbox = await Sandbox.withRepo();
      await sandbox.serve(["--offline"], { ...env, MODHOST_NODE_AGENT: "kubo/0.43.0" });
      await goesThrough(sandbox);
      assert.equal(await sandbox.does(["id", "-f", "<aver>"]), "kubo/0.43.0");
    });

    test("every command works without a daemon as it does with one", async () => {
      await using sandbox = await Sandbox.withRepo();
      await goesThrough(sandbox);
    });

    test("the help lists the options of its level, and marks those that came with the other", async () => {
      await using sandbox = await Sandbox.make();
      const help = async (...words: string[]) => (await sandbox.node([...words, "--help"], { env })).stdout;
      const put = await help("block", "put");
      assert.equal(/^ {2}--cid-codec /m.test(put), level === "0.43");
      assert.match(put, /^ {2}--allow-big-block /m);
      assert.match(await help("multibase"), /^ {2}multibase encode .*\[0\.43\]$/m);
    });
  });
}
