/**
 * CIDs, kinds of leaves and modes in the namespace, where the two levels differ and where they
 * agree.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type RpcHost, startRpc } from "./support.ts";

const hello = "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX";

interface Stat {
  readonly Hash: string;
  readonly CumulativeSize: number;
  readonly Mode?: string;
}

/** Makes calls that must return 200. */
async function make(rpc: RpcHost, ...calls: readonly (string | readonly [path: string, content: string])[]) {
  for (const call of calls) {
    const [path, content] = typeof call === "string" ? [call] : call;
    const { status, text } = await rpc.call(`files/${path}`, content === undefined ? undefined : { data: content });
    assert.equal(status, 200, `${path}: ${text}`);
  }
}

const stat = (rpc: RpcHost, path: string) => rpc.value<Stat>(`files/stat?arg=${path}`);

/** Returns whether the CIDs at these paths have version 1. */
const areNew = (rpc: RpcHost, ...paths: readonly string[]) =>
  Promise.all(paths.map(async (path) => (await stat(rpc, path)).Hash.startsWith("baf")));

describe("at the level 0.43", () => {
  let rpc: RpcHost;
  before(async () => {
    rpc = await startRpc({ api_level: "0.43" });
    await rpc.call("add?pin=false", { hello: "hello" });
  });
  after(() => rpc.stop());

  test("new entries follow the options or Import, not the parent directory", async () => {
    await make(rpc, "mkdir?arg=/form&cid-version=1", "mkdir?arg=/form/d", ["write?arg=/form/f&create=true", "x"]);
    await make(rpc, `cp?arg=/ipfs/${hello}&arg=/form/made/x&parents=true`, "mkdir?arg=/form/v1&cid-version=1");
    const paths = ["/form", "/form/d", "/form/f", "/form/made", "/form/v1"];
    assert.deepEqual(await areNew(rpc, ...paths), [true, false, false, false, true]);
  });

  test("an existing directory keeps its CID format", async () => {
    await make(rpc, "mkdir?arg=/kept/a&parents=true", "mkdir?arg=/kept/a&parents=true&cid-version=1");
    await make(rpc, ["write?arg=/kept/a/f&create=true&parents=true&cid-version=1", "x"]);
    assert.deepEqual(await areNew(rpc, "/kept/a", "/kept/a/f"), [false, true]);
  });

  test("Import sets the CID format, and an option of the call replaces all of it", async () => {
    await rpc.call("config?arg=Import.HashFunction&arg=sha2-512");
    await make(rpc, "mkdir?arg=/import", "mkdir?arg=/import/d&cid-version=0");
    await rpc.call("config?arg=Import.HashFunction&arg=null&json=true");
    assert.match((await stat(rpc, "/import")).Hash, /^bafybg/);
    assert.equal((await stat(rpc, "/import/d")).Hash, "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn");
  });

  test("a truncated leaf keeps its type", async () => {
    await make(rpc, `cp?arg=/ipfs/${hello}&arg=/cut`, ["write?arg=/cut&truncate=true", ""]);
    assert.equal((await stat(rpc, "/cut")).Hash, "QmaRwA91m9Rdfaq9u3FH1fdMVxw1wFPjKL38czkWMxh3KB");
  });

  test("raw blocks are appended to a file of one raw block", async () => {
    await make(rpc, ["write?arg=/raw&create=true&raw-leaves=true", "xxxxxxxxxx"]);
    await make(rpc, ["write?arg=/raw&truncate=true&raw-leaves=false", "y".repeat(300)]);
    const { CumulativeSize } = await stat(rpc, "/raw");
    assert.equal(CumulativeSize, 401);
  });

  test("chmod reads further bits at the positions of Go's file modes, and stat shows them there", async () => {
    await make(rpc, "mkdir?arg=/mode", "chmod?arg=-1&arg=/mode");
    assert.equal((await stat(rpc, "/mode")).Mode, "20064000777");
    const { text } = await rpc.call("files/stat?arg=/mode&format=<mode>%20<mode-octal>&encoding=text");
    assert.equal(text, "dugtrwxrwxrwx 0777\n");
    await make(rpc, "chmod?arg=1777&arg=/mode");
    assert.equal((await stat(rpc, "/mode")).Mode, "20000000777");
  });

  test("reads and removals name the path like Kubo", async () => {
    await make(rpc, "mkdir?arg=/words");
    assert.deepEqual(await rpc.failure("files/read?arg=//words/x/../a"), [500, "/words/a: file does not exist"]);
    const said = async (path: string) => (await rpc.call(`files/rm?arg=${path}`)).lines[0];
    assert.equal(await said("//words"), "/words: path is a directory, use -r to remove directories");
    assert.equal(await said("/words/a/b"), "/words/a/b: file does not exist");
    assert.equal(await said("words"), "words is not a valid path: paths must start with a leading slash");
  });
});

describe("at the level 0.9", () => {
  let rpc: RpcHost;
  before(async () => {
    rpc = await startRpc();
    await rpc.call("add?pin=false", { hello: "hello" });
  });
  after(() => rpc.stop());

  test("new entries follow the parent directory, and options change that", async () => {
    await make(rpc, "mkdir?arg=/form&cid-version=1", "mkdir?arg=/form/d", ["write?arg=/form/f&create=true", "x"]);
    await make(rpc, "mkdir?arg=/kept", "mkdir?arg=/kept&parents=true&cid-version=1");
    assert.deepEqual(await areNew(rpc, "/form/d", "/form/f", "/kept"), [true, true, true]);
  });

  test("a truncated leaf becomes a raw node of UnixFS", async () => {
    await make(rpc, `cp?arg=/ipfs/${hello}&arg=/cut`, ["write?arg=/cut&truncate=true", ""]);
    assert.equal((await stat(rpc, "/cut")).Hash, "QmejyB5JSYNMcJeQbXuPj4W1DM23DxsWrU42JQFqy3Z7Xe");
  });

  test("a directory that is moved to itself or into itself stays, although go-ipfs loses it", async () => {
    await make(rpc, "mkdir?arg=/own/sub&parents=true", "mv?arg=/own&arg=/own");
    const words = "cannot move /own to a subdirectory of itself, /own/sub/own";
    assert.deepEqual(await rpc.failure("files/mv?arg=/own&arg=/own/sub"), [500, words]);
    assert.deepEqual(await rpc.value("files/ls?arg=/own"), { Entries: [{ Name: "sub", Type: 0, Size: 0, Hash: "" }] });
  });

  test("the source of a move has no trailing slash", async () => {
    await make(rpc, "mkdir?arg=/slash");
    assert.deepEqual(await rpc.failure("files/mv?arg=/slash/&arg=/moved"), [500, "file does not exist"]);
  });

  test("a directory below a file is refused with the path above the file", async () => {
    await make(rpc, ["write?arg=/above/f&create=true&parents=true", "x"]);
    assert.deepEqual(await rpc.failure("files/mkdir?arg=/above/f/d"), [500, "above was not a directory"]);
  });
});
