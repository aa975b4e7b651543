import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { NodeModule } from "modhost/node";
import { createTestHost, type TestHost } from "#core/testing/index.ts";
import { called, type Given } from "#test/unit/core/cli/called.ts";

const emptyDirectory = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";
const hello = "QmZULkCELmmk5XNfCgTnCyFgAVxBRBXyDHGGMVoLFLiXEN";

let folder: string;
let host: TestHost;
let api: string;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "modhost-rpc-"));
  host = await createTestHost({ config: { modules_enabled: ["http", "http_api"] } });
  api = host.url("").replace(/\/$/, "");
});
after(async () => {
  await host.stop();
  await rm(folder, { recursive: true });
});

/** Calls the host of these tests, unless an address is given; undefined stands for no address. */
const rpc = (words: readonly string[], given: Given = {}) => called(folder, words, { address: api, ...given });

async function tree(name: string): Promise<void> {
  await mkdir(join(folder, name, "sub"), { recursive: true });
  await writeFile(join(folder, name, "a"), "a\n");
  await writeFile(join(folder, name, "sub", "b b"), "b\n");
  await writeFile(join(folder, name, ".hidden"), "h\n");
  await symlink("a", join(folder, name, "link"));
}

describe("rpc: the server", () => {
  test("the server is found by the file api of the repo", async () => {
    const found = await rpc(["version", "-n"], { address: undefined, env: { IPFS_PATH: join(host.folder, "repo") } });
    assert.deepEqual(found, { code: 0, stdout: "0.9.0\n", stderr: "" });
    const configured = await rpc(["version", "-n"], {
      address: undefined,
      env: { MODHOST_NODE_REPO: join(host.folder, "repo") },
    });
    assert.equal(configured.stdout, "0.9.0\n");
  });

  test("the server can be named by a multiaddress", async () => {
    const { port } = new URL(api);
    assert.equal((await rpc(["version", "-n"], { address: `/ip4/127.0.0.1/tcp/${port}` })).stdout, "0.9.0\n");
  });

  test("a server that does not know the host name explains that in one line, with a remedy", async () => {
    const named = await createTestHost({
      config: { modules_enabled: ["http", "http_api", "http_errors"], hosts: { localhost: {} } },
    });
    try {
      const { port } = new URL(named.url(""));
      const { code, stdout, stderr } = await rpc(["version", "-n"], { address: `http://127.0.0.1:${port}` });
      assert.deepEqual([code, stdout], [1, ""]);
      assert.match(
        stderr,
        /^modhost: .* 404 Not Found: Unknown host: 127\.0\.0\.1:\d+; add 127\.0\.0\.1 to its option hosts, or use --api .*\n$/,
      );
      assert.equal((await rpc(["version", "-n"], { address: `http://localhost:${port}` })).stdout, "0.9.0\n");
    } finally {
      await named.stop();
    }
  });

  test("a server that redirects callers elsewhere reports the address", async () => {
    const away = createServer((_request, response) => response.writeHead(308, { Location: "https://there:1/x" }).end());
    await new Promise<void>((done) => away.listen(0, "127.0.0.1", done));
    try {
      const { port } = away.address() as AddressInfo;
      const { code, stderr } = await rpc(["id"], { address: `http://127.0.0.1:${port}` });
      assert.equal(code, 1);
      assert.match(stderr, /only accepts calls at https:\/\/there:1: use --api https:\/\/there:1\n$/);
    } finally {
      away.close();
    }
  });

  test("an unreachable server is named with the source of its address", async () => {
    const { code, stderr } = await rpc(["id"], { address: "http://127.0.0.1:1" });
    assert.equal(code, 1);
    assert.match(stderr, /No server responds at http:\/\/127\.0\.0\.1:1 \(from --api\): .*ECONNREFUSED/);
  });

  test("the server can be named by host and port", async () => {
    assert.equal((await rpc(["version", "-n"], { address: new URL(api).host })).stdout, "0.9.0\n");
  });

  test("the server is the one of the repo that --config names, before or after the command, whatever $IPFS_PATH says", async () => {
    await writeFile(join(folder, "own.yaml"), `node_repo: ${JSON.stringify(join(host.folder, "repo"))}\n`);
    const env = { IPFS_PATH: join(folder, "other") };
    for (const words of [
      ["--config", "own.yaml", "version", "-n"],
      ["version", "-n", "-c=own.yaml"],
    ]) {
      assert.deepEqual(await rpc(words, { address: undefined, env }), { code: 0, stdout: "0.9.0\n", stderr: "" });
    }
    assert.match((await rpc(["id", "--config"], { address: undefined })).stderr, /--config needs a value/);
    assert.match((await rpc(["id", "-c", "/nope.yaml"], { address: undefined })).stderr, /\/nope\.yaml/);
  });

  for (const [title, given] of [
    ["$IPFS_PATH names", { env: { IPFS_PATH: "quiet" } }],
    ["the environment configures", { env: { MODHOST_NODE_REPO: "quiet" } }],
    ["a config file names", { words: ["-c", "quiet.yaml"] }],
    ["is in ./data", { cwd: "home" }],
  ] as const) {
    test(`no other server is called if the server of a repo that ${title} does not run`, async () => {
      await mkdir(join(folder, "home", "data", "repo"), { recursive: true });
      await writeFile(join(folder, "quiet.yaml"), "node_repo: ./quiet\n");
      const words = "words" in given ? given.words : [];
      const { code, stdout, stderr } = await rpc(["id", ...words], { address: undefined, ...given });
      assert.deepEqual([code, stdout], [1, ""]);
      assert.match(
        stderr,
        /^modhost: No server announces its API in the repo \/.*\/(quiet|data\/repo) \(.*\): start one with the module http_api, or .* --api\n$/,
      );
    });
  }

  test("the server at the default address is called if nothing names a repo, and stderr says so", async () => {
    await mkdir(join(folder, "bare"), { recursive: true });
    const { stderr } = await rpc(["nope-nope"], { address: undefined, cwd: "bare" });
    assert.match(stderr, /^modhost: there is no repo .*\/bare\/data\/repo, so the command is sent to .*\/tcp\/5280\n/);
  });

  test("an invalid address of the server is a usage error", async () => {
    assert.equal((await rpc(["id"], { address: "/ip4/nowhere" })).code, 2);
    assert.equal((await rpc(["id"], { address: "localhost" })).code, 2);
  });
});

describe("rpc: words", () => {
  for (const [words, message] of [
    [["nope"], /no command nope/],
    [["catt", "x"], /no command catt: did you mean cat\?/],
    [["pin", "lss", "x"], /no command pin lss: did you mean pin ls\?/],
    [["--offline"], /No command is given\n/],
    [["pin", "--offline"], /No command is given after pin\n/],
    [["--json", "version"], /version has no option --json: did you mean --encoding=json\?/],
    [["repo", "stat", "--no-json"], /repo stat has no option --no-json: did you mean --encoding=text\?/],
    [["pin", "lss"], /no command pin lss: did you mean pin ls\?/],
    [["ls", "--heders", hello], /ls has no option --heders: did you mean --headers\?/],
    [["ls", "-Z"], /ls has no option -Z/],
    [["version", "extra"], /version takes no argument, but there is extra/],
    [["cat", hello, "--offset"], /--offset needs a value/],
    [["cat", hello, "--offset=x"], /could not convert value "x" to type "int64"/],
    [["cat", "-o", "1", "--offset=2", hello], /cat takes --offset once/],
    [["cat"], /argument "ipfs-path" is required/],
  ] as const) {
    test(`${words.join(" ")} is refused with exit code 2`, async () => {
      const { code, stdout, stderr } = await rpc(words);
      assert.deepEqual([code, stdout], [2, ""]);
      assert.match(stderr, message);
    });
  }

  test("modhost rpc without a command lists all commands, and with a group lists the commands in it", async () => {
    const all = await rpc([]);
    assert.equal(all.code, 0);
    for (const name of ["add", "pin remote service add", "swarm filters rm"])
      assert.ok(all.stdout.includes(`  ${name} `), name);
    const group = await rpc(["pin", "remote"]);
    assert.match(group.stdout, /^Usage: modhost rpc pin remote COMMAND/);
    assert.ok(!group.stdout.includes("pin verify"));
  });

  test("--help shows arguments, options and their defaults", async () => {
    const { stdout } = await rpc(["refs", "--help"]);
    assert.match(stdout, /^Usage: modhost rpc refs IPFS-PATH\.\.\. \[OPTIONS\]/);
    assert.match(stdout, /-r, --recursive/);
    assert.match(stdout, /--max-depth MAX-DEPTH .*\(default: -1\)/);
    assert.match(stdout, /Further commands:\n {2}refs local/);
  });

  test("options may precede the command", async () => {
    for (const words of [
      ["--encoding", "json"],
      ["--enc=json", "--timeout", "5s"],
      ["--cid-base", "base32", "--offline", "--enc", "json"],
    ]) {
      const { stdout, stderr } = await rpc([...words, "version"]);
      assert.equal(stderr, "");
      assert.equal(JSON.parse(stdout).Version, "0.9.0");
    }
    assert.equal((await rpc(["cid", "format", "-f=%c", "--", hello])).stdout, "protobuf\n");
  });

  test("single-letter options can be combined, and have values", async () => {
    const { stdout } = await rpc(["cid", "format", "-f=%v", "-b", "z", "--", hello]);
    assert.equal(stdout, "cidv0\n");
    await tree("letters");
    const { stdout: hash } = await rpc(["add", "-rnQ", "letters"]);
    assert.match(hash, /^Qm\w{44}\n$/);
  });
});

describe("rpc: outcomes", () => {
  test("the output is text, or with --encoding=json one value per line", async () => {
    assert.equal(
      (await rpc(["pin", "ls", "--type=recursive", emptyDirectory])).stdout,
      `${emptyDirectory} recursive\n`,
    );
    const { stdout } = await rpc(["version", "--encoding=json"]);
    assert.equal(JSON.parse(stdout).Version, "0.9.0");
  });

  test("a failure has exit code 1 and its message", async () => {
    const { code, stdout, stderr } = await rpc(["block", "get", "--offline", hello]);
    assert.deepEqual([code, stdout], [1, ""]);
    assert.equal(stderr, "modhost: blockservice: key not found\n");
  });

  test("failed items go to stderr, and the call fails", async () => {
    const converted = await rpc(["cid", "format", "-v=1", "-b=base32", hello, "nope"]);
    assert.equal(converted.code, 1);
    assert.match(converted.stdout, /^bafybei\w+\n$/);
    assert.match(converted.stderr, /^nope: .*\nmodhost: some CIDs could not be converted\n$/);
    const removed = await rpc(["block", "rm", emptyDirectory]);
    assert.deepEqual(removed, {
      code: 1,
      stdout: "",
      stderr: `cannot remove ${emptyDirectory}: pinned: recursive\nmodhost: some blocks not removed\n`,
    });
  });

  test("missing arguments are read from the standard input", async () => {
    const { stdout } = await rpc(["cid", "base32"], { stdin: `${hello}\n${emptyDirectory}\n` });
    assert.match(stdout, /^bafybei\w+\nbafybei\w+\n$/);
  });
});

describe("rpc: add, cat and get", () => {
  test("content from the standard input goes back to the standard output", async () => {
    assert.deepEqual(await rpc(["add", "-Q"], { stdin: "hello\n" }), { code: 0, stdout: `${hello}\n`, stderr: "" });
    assert.equal(
      (await rpc(["add", "--stdin-name=greeting"], { stdin: "hello\n" })).stdout,
      `added ${hello} greeting\n`,
    );
    assert.equal((await rpc(["cat", hello])).stdout, "hello\n");
    assert.equal((await rpc(["get", hello, "-o=not/yet/there"])).code, 0);
    assert.equal(await readFile(join(folder, "not/yet/there"), "utf8"), "hello\n");
    assert.equal((await rpc(["cat", "--offset=1", "--length=3", hello])).stdout, "ell");
  });

  test("links in a folder are followed if that is requested", async () => {
    await tree("followed");
    await symlink("sub", join(folder, "followed", "folder"));
    const { stdout } = await rpc(["add", "-r", "--dereference-symlinks", "followed"]);
    assert.match(stdout, / followed\/folder\/b b\n/);
    const [, a] = /added (\w+) followed\/a\n/.exec(stdout) ?? [];
    assert.match(stdout, new RegExp(`added ${a} followed/link\n`));
    await symlink("..", join(folder, "followed", "round"));
    const { code, stderr } = await rpc(["add", "-r", "--dereference-symlinks", "followed"]);
    assert.notEqual(code, 0);
    assert.match(stderr, /followed\/round leads back to a folder above it/);
  });

  test("a tree is uploaded and downloaded again, with links and without hidden names", async () => {
    await tree("there");
    const added = await rpc(["add", "-r", "there"]);
    const names = added.stdout
      .trim()
      .split("\n")
      .map((line) => line.split(" ").slice(2).join(" "));
    assert.deepEqual(names, ["there/a", "there/link", "there/sub/b b", "there/sub", "there"]);
    const root = added.stdout.trim().split("\n").at(-1)?.split(" ")[1] ?? "";
    assert.equal((await rpc(["get", root, "-o", "back"])).stdout, "Saving file(s) to back\n");
    assert.deepEqual((await readdir(join(folder, "back"), { recursive: true })).sort(), [
      "a",
      "link",
      "sub",
      "sub/b b",
    ]);
    assert.equal(await readFile(join(folder, "back", "sub", "b b"), "utf8"), "b\n");
    assert.equal(await readlink(join(folder, "back", "link")), "a");
    assert.equal((await rpc(["get", root, "-a", "-o", "packed"])).stdout, "Saving archive to packed.tar\n");
    assert.ok((await readFile(join(folder, "packed.tar"))).includes("b b"));
    const all = await rpc(["add", "-rH", "--ignore=sub", "there"]);
    assert.deepEqual(all.stdout.match(/there\S*/g), ["there/.hidden", "there/a", "there/link", "there"]);
  });

  test("a flag accepts the same words as on the server, also for options that the client applies", async () => {
    await tree("flags");
    for (const word of ["", "1", "t", "T", "true", "True"]) {
      const { stdout } = await rpc(["add", `-r=${word}`, `--quieter=${word}`, "flags"]);
      assert.match(stdout, /^Qm\w{44}\n$/, word);
      const file = `flag-${word}`;
      const { code } = await rpc(["get", hello, `--archive=${word}`, `--compress=${word}`, "-o", file]);
      assert.equal(code, 0);
      assert.deepEqual([...(await readFile(join(folder, `${file}.tar.gz`))).subarray(0, 2)], [0x1f, 0x8b], word);
    }
    for (const word of ["0", "f", "F", "false", "False"]) {
      const { stdout } = await rpc(["add", "-r", `-Q=${word}`, "flags/sub"]);
      assert.match(stdout, /^added Qm.*\nadded Qm/, word);
    }
    assert.match((await rpc(["add", "-Q=yes", "flags/a"])).stderr, /could not convert value "yes" to type "bool"/);
  });

  test("an archive replaces a link at its path", async () => {
    await writeFile(join(folder, "linked"), "mine");
    await symlink("linked", join(folder, "p.tar"));
    assert.equal((await rpc(["get", hello, "-a", "-o", "p.tar"])).code, 0);
    assert.equal(await readFile(join(folder, "linked"), "utf8"), "mine");
  });

  test("a folder needs --recursive, and a missing file is named", async () => {
    await mkdir(join(folder, "plain"));
    assert.equal((await rpc(["add", "plain"])).code, 2);
    const { code, stderr } = await rpc(["add", "none"]);
    assert.equal(code, 1);
    assert.match(stderr, /none: no such file; add takes a file, or the standard input/);
  });

  test("a file that cannot be read to its end is named, whatever was added before", {
    skip: !existsSync("/proc/self/mem"),
  }, async () => {
    await writeFile(join(folder, "readable"), Buffer.alloc(1_000_000));
    const { code, stderr } = await rpc(["add", "--pin=false", "readable", "/proc/self/mem"]);
    assert.equal(code, 1);
    assert.match(stderr, /EIO/);
  });

  test("progress is drawn only on a terminal, and erased at the end", async () => {
    const content = Buffer.alloc(30_000_000, 7);
    await writeFile(join(folder, "large"), content);
    const watched = await rpc(["add", "--pin=false", "large"], { terminal: true });
    assert.match(watched.stdout, /^added \w+ large\n$/);
    assert.match(watched.stderr, /\r .* \/ 30\.0 MB \[=* *\] \d+%/);
    assert.ok(watched.stderr.endsWith("\r\x1b[K"));
    const quiet = await rpc(["add", "--pin=false", "-q", "large"], { terminal: true });
    assert.equal(quiet.stderr, "");
    assert.equal(quiet.stdout, `${watched.stdout.split(" ")[1]}\n`);
  });
});

describe("rpc: config edit", () => {
  const editor = (EDITOR: string) => ({ env: { PATH: process.env.PATH, EDITOR } });

  test("config edit sends the edited configuration back", async () => {
    const edited = await rpc(["config", "edit"], editor('sed -i \'s/"StorageMax": "10GB"/"StorageMax": "11GB"/\''));
    assert.deepEqual(edited, { code: 0, stdout: "", stderr: "" });
    assert.equal((await rpc(["config", "Datastore.StorageMax"])).stdout, "11GB\n");
  });

  test("config edit changes nothing if the editor fails or none is set", async () => {
    assert.match(
      (await rpc(["config", "edit"], editor("false #"))).stderr,
      /editor ended with 1; nothing was changed\n/,
    );
    assert.match((await rpc(["config", "edit"], editor("kill $$ #"))).stderr, /editor ended with SIGTERM; nothing/);
    assert.match((await rpc(["config", "edit"])).stderr, /set EDITOR/);
  });

  for (const [title, written, reason] of [
    ["the server refuses it", "printf '{ slip' >", /^modhost: failed to decode file as config/],
    ["the editor fails behind it", 'sh -c \'printf "{ slip" > "$1"; exit 3\' sh', /^modhost: The editor ended with 3/],
  ] as const) {
    test(`config edit keeps the edited text if ${title}, and names the file`, async () => {
      const { code, stderr } = await rpc(["config", "edit"], editor(written));
      assert.equal(code, 1);
      assert.match(stderr, reason);
      const file = /Your text is in (.*)\n$/.exec(stderr)?.[1] ?? "";
      assert.equal(await readFile(file, "utf8"), "{ slip");
      await rm(dirname(file), { recursive: true });
    });
  }
});

describe("rpc: messages of a server that has topics in multibase", () => {
  test("messages use the topic as typed, and come from a file or the standard input", async () => {
    await using own = await createTestHost({
      config: { modules_enabled: ["http", "http_api"], api_pubsub_wire: "multibase" },
    });
    const address = own.url("").replace(/\/$/, "");
    const { lowLevel: node } = own.host.exports<NodeModule>("node");
    await node.goOnline();
    const { pubsub } = await node.network();
    const end = new AbortController();
    const messages = pubsub?.subscribe("news of today", end.signal)[Symbol.asyncIterator]();
    const first = messages?.next();
    assert.equal((await rpc(["pubsub", "ls"], { address })).stdout, "news of today\n");
    const wrong = await rpc(["pubsub", "pub", "news of today", "hello there"], { address });
    assert.match(wrong.stderr, /hello there: no such file; pubsub pub takes a file, or the standard input/);
    assert.equal((await rpc(["pubsub", "pub", "news of today"], { address, stdin: "hello there" })).code, 0);
    assert.equal(Buffer.from((await first)?.value?.data ?? []).toString(), "hello there");
    end.abort();
  });
});
