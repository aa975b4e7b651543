/**
 * Transfers files with their names, modes and times between the disk and a server, and refuses
 * pipes, sockets and devices.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { createTestHost, type TestHost } from "#core/testing/index.ts";
import { called } from "#test/unit/core/cli/called.ts";

const skip = process.platform === "win32" || process.platform === "darwin" ? "names are texts there" : false;
/** The text has one character for each byte. */
const bytes = (path: string) => Buffer.from(path, "latin1");

let folder: string;
let host: TestHost;
let api: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "modhost-names-"));
  host = await createTestHost({ config: { modules_enabled: ["http", "http_api"], node_offline: true } });
  api = host.url("").replace(/\/$/, "");
});
after(async () => {
  await host.stop();
  await rm(folder, { recursive: true });
});

const rpc = (...words: string[]) => called(folder, words, { address: api });
const post = async (path: string) => {
  const response = await fetch(`${api}/api/v0/${path}`, { method: "POST" });
  return Buffer.from(await response.arrayBuffer()).toString("latin1");
};

describe("names that are not UTF-8", { skip }, () => {
  /** The CID that go-ipfs 0.9 and Kubo 0.43 compute. */
  const root = "QmZPmNedzBw68SoQiAB8qCufHryn8scTf9pSaFaTcj4TPP";

  before(async () => {
    const at = (name: string) => bytes(`${folder}/dir/${name}`);
    await mkdir(at("d\xff"), { recursive: true });
    await writeFile(at("caf\xe8"), "one");
    await writeFile(at("caf\xe9"), "two");
    await writeFile(at("plain"), "ok");
    await writeFile(at("d\xff/x"), "in");
    await symlink(bytes("caf\xe8"), at("l"));
  });

  test("a folder with such names is added completely, with the CID that go-ipfs computes", async () => {
    const added = await rpc("add", "-r", "-Q", "dir");
    assert.deepEqual(added, { code: 0, stdout: `${root}\n`, stderr: "" });
  });

  test("get writes files whose names have the original bytes", async () => {
    assert.equal((await rpc("get", "-o", "back", root)).code, 0);
    const found = await readdir(join(folder, "back"), { encoding: "buffer" });
    assert.deepEqual(found.map((name) => name.toString("latin1")).sort(), [
      "caf\xe8",
      "caf\xe9",
      "d\xff",
      "l",
      "plain",
    ]);
    assert.equal(await readFile(bytes(`${folder}/back/caf\xe9`), "utf8"), "two");
    assert.equal(await readFile(bytes(`${folder}/back/d\xff/x`), "utf8"), "in");
    const target = await readlink(join(folder, "back", "l"), { encoding: "buffer" });
    assert.equal(target.toString("latin1"), "caf\xe8");
    assert.equal((await rpc("add", "-r", "-Q", "back")).stdout, `${root}\n`);
  });

  test("a file named on the command line is found by its garbled name; if two names match, the error lists both", async () => {
    const only = await rpc("add", "-r", "-Q", "dir/d\ufffd");
    assert.deepEqual([only.code, only.stdout], [0, "QmUSgFzX7uMe4J4cp3vLAn1cLvFWMxXEPc7MTXD9f7ciot\n"]);
    const both = await rpc("add", "dir/caf\ufffd");
    assert.equal(both.code, 1);
    assert.match(both.stderr, /may mean any of 2 names: \$'caf\\xe8', \$'caf\\xe9'/);
  });

  test("paths, listings and the file namespace keep the bytes; JSON has U+FFFD for each, as in go-ipfs", async () => {
    assert.equal(await post(`cat?arg=${root}/caf%E9`), "two");
    assert.equal(await post(`cat?arg=${root}/caf%E8`), "one");
    assert.match(await post(`cat?arg=${root}/caf%EF`), /no link named \\"caf\\\\xef\\"/);
    assert.match(await post(`ls?arg=${root}&encoding=text`), /3 caf\xe8\n.*3 caf\xe9\n.* d\xff\/\n/s);
    assert.match(await post(`ls?arg=${root}`), /"Name":"caf\\ufffd".*"Name":"caf\\ufffd"/);
    assert.match(await post(`refs?arg=${root}&format=%3Clinkname%3E&encoding=text`), /^caf\xe8\ncaf\xe9\nd\xff\n/);
    assert.equal(await post(`files/cp?arg=/ipfs/${root}&arg=/z`), "");
    assert.equal(await post("files/mv?arg=/z/caf%E9&arg=/z/x%E9"), "");
    assert.equal(await post("files/read?arg=/z/x%E9"), "two");
    assert.match(await post("files/stat?arg=/z"), /QmUkgZJ6bMLRjy6QKdtXWtGCBBBoL1S2PpwTGmcLJFZgYj/);
    assert.equal(await post("files/ls?arg=/z&encoding=text"), "caf\xe8\nd\xff\nl\nplain\nx\xe9\n");
    assert.equal(await post("files/rm?arg=/z/x%E9"), "");
    assert.match(await post("files/stat?arg=/z"), /QmVyqmeMvSwpzTvUugwpbhtKUmUENufM9HDhP8RDkNZugb/);
    assert.equal(await post("files/mkdir?arg=/z/n%FE/m%80&parents=true"), "");
    assert.match(await post("files/stat?arg=/z"), /QmU3CY1Z5xeUvssxHsqGV4Wdnza5hdLvwHi9K2bfogxuSP/);
  });
});

describe("paths that are neither file, folder nor link", { skip }, () => {
  const fifo = (name: string) => execFileSync("mkfifo", ["-m", "644", join(folder, name)]);
  before(async () => {
    await mkdir(join(folder, "d"));
    await writeFile(join(folder, "d", "a"), "x\n");
    fifo("d/pipe");
    fifo("pipe");
    await symlink("pipe", join(folder, "d", "link"));
    await symlink("pipe", join(folder, "link"));
    await writeFile(join(folder, "rules"), "pipe\n");
  });

  for (const [what, words, named] of [
    ["a pipe in a folder", ["add", "-r", "d"], "d/pipe"],
    ["a pipe by its name", ["add", "pipe"], "pipe"],
    ["a pipe behind a link that is followed", ["add", "--dereference-args", "link"], "link"],
    [
      "a pipe behind a link within a folder that is followed",
      ["add", "-r", "--dereference-symlinks", "--ignore=pipe", "d"],
      "d/link",
    ],
    ["a pipe among rules of names to leave out", ["add", "-r", "--ignore-rules-path=pipe", "d"], "pipe"],
    ["a pipe for nocopy", ["add", "--nocopy", "pipe"], "pipe"],
    ["a pipe as an archive", ["dag", "import", "pipe"], "pipe"],
    ["a pipe as a block", ["block", "put", "pipe"], "pipe"],
    ["a pipe as a configuration", ["config", "replace", "pipe"], "pipe"],
    ["a pipe as what is written into a file", ["files", "write", "--create", "/f", "pipe"], "pipe"],
    ["a pipe as the place of a download", ["get", "-o", "pipe", "QmYDzv6EMD2iPAAZ8PHc4s3z2otgFpL2b8YxAgPT1YoHKB"], ""],
  ] as const) {
    test(`${what} is refused with its name and not opened`, async () => {
      const { code, stdout, stderr } = await rpc(...words);
      assert.equal(code, 1, stderr);
      assert.ok(
        stderr.includes(`unrecognized file type for ${named === "" ? join(folder, "pipe") : named}: prw-r--r--`),
        stderr,
      );
      assert.doesNotMatch(stdout, /added/);
    });
  }

  test("ignored files, and links that are not followed, are not refused", async () => {
    // The result of go-ipfs 0.9 and Kubo 0.43.
    const cid = "QmR1uJLzneT9pQnTKQDsKu7k6m2qQ8Sc33sm6PokqspU1o\n";
    assert.equal((await rpc("add", "-r", "-Q", "--ignore=pipe", "d")).stdout, cid);
    assert.equal((await rpc("add", "-r", "-Q", "--ignore-rules-path=rules", "d")).stdout, cid);
    assert.equal((await rpc("add", "-Q", "link")).code, 0);
  });

  test("a socket and a device are refused as well", async (t) => {
    const server = createServer().listen(join(folder, "sock"));
    await new Promise((resolve) => server.once("listening", resolve));
    t.after(() => server.close());
    assert.match((await rpc("add", "sock")).stderr, /unrecognized file type for sock: Srwx/);
    assert.match((await rpc("add", "/dev/null")).stderr, /unrecognized file type for \/dev\/null: Dcrw-rw-rw-/);
    await rpc("get", "-o", "/dev/null", "QmYDzv6EMD2iPAAZ8PHc4s3z2otgFpL2b8YxAgPT1YoHKB");
    assert.ok((await lstat("/dev/null")).isCharacterDevice());
  });
});

describe("rpc: files and folders", () => {
  test("a folder is written into an existing folder, and a file gets a name in it", async () => {
    await mkdir(join(folder, "site", "sub"), { recursive: true });
    await writeFile(join(folder, "site", "a"), "a\n");
    await writeFile(join(folder, "site", "sub", "b b"), "b\n");
    await writeFile(join(folder, "hello"), "hello\n");
    const hello = (await rpc("add", "-Q", "hello")).stdout.trim();
    const root = (await rpc("add", "-rQ", "site")).stdout.trim();
    for (const [words, output] of [
      [[root], "site-1"],
      [[root], "site-1/"],
      [[`${root}/sub`], "site-1/deep"],
    ] as const) {
      await mkdir(join(folder, output), { recursive: true });
      const { stdout } = await rpc("get", ...words, "-o", output);
      assert.equal(stdout, `Saving file(s) to ${output}\n`);
    }
    await mkdir(join(folder, "site-2"));
    assert.equal((await called(folder, ["get", `/ipfs/${root}/`, "-o", "."], { address: api, cwd: "site-2" })).code, 0);
    const entries = async (name: string) => (await readdir(join(folder, name))).sort();
    assert.deepEqual(await entries("site-1"), ["a", "deep", "sub"]);
    assert.deepEqual(await entries("site-1/deep"), ["b b"]);
    assert.deepEqual(await entries("site-2"), ["a", "sub"]);
    for (const output of ["site-2", "site-2/", "site-2/a"]) await rpc("get", hello, "-o", output);
    await rpc("get", `${root}/a`, "-o", "site-2/sub");
    assert.deepEqual(await entries("site-2"), [hello, "a", "sub"]);
    assert.deepEqual(await entries("site-2/sub"), ["a", "b b"]);
    assert.equal(await readFile(join(folder, "site-2", "a"), "utf8"), "hello\n");
    const onFile = await rpc("get", root, "-o", "site-2/a");
    assert.equal(onFile.code, 1, "a file is not replaced by a folder");
  });

  test("a path that is named twice is sent once", async () => {
    await writeFile(join(folder, "twice"), "twice\n");
    const { code, stdout } = await rpc("add", "-w", "twice", "./twice", "twice");
    assert.equal(code, 0);
    assert.equal(stdout.match(/twice$/gm)?.length, 1);
  });

  test("--preserve-mode and --preserve-mtime send modes and times, like Kubo's own client", async () => {
    const path = (name: string) => join(folder, "dated", name);
    await mkdir(path("sub"), { recursive: true });
    await writeFile(path("f"), "a\n");
    await chmod(path("f"), 0o640);
    for (const name of ["sub", "."]) await chmod(path(name), 0o755);
    await utimes(path("f"), 1_577_934_245, 1_577_934_245);
    await utimes(path("sub"), new Date(-1000), new Date(-1000));
    await utimes(path("."), 1_577_934_245, 1_577_934_245);
    const added = async (...words: string[]) =>
      (await rpc("add", "-r", ...words)).stdout.split("\n").map((line) => line.split(" ")[1]);
    assert.deepEqual(await added("--preserve-mode", "--preserve-mtime", "dated"), [
      "QmWJJVE9qr6hem3uVGbgc9S6P4PAHgLgZGLaQff3cnUZiE",
      "Qma8ZsR155588DW2JzzZVVX7qYT5efhD7acVNUqsbB9FcZ",
      "QmUrGTrmf4wMkjZ8Bm7kJhSsadDMxVXc9D6zvF4CwPVQFW",
      undefined,
    ]);
    assert.deepEqual(await added("--preserve-mode", "dated/f"), [
      "QmYYbnAP1jYpLccLo66Cv8UwfQQW4Ga2vbogzGdz3pfquE",
      undefined,
    ]);
    assert.deepEqual(await added("--preserve-mtime", "dated/f"), [
      "Qmc6cWfL7RNaYyjTSsiJueA5qUmAcC2BT6kSR6KonKBMS9",
      undefined,
    ]);
  });
});
