/**
 * Runs the command line of go-ipfs against its own daemon and against ours. The same words
 * have the same outcome.
 */
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ownProgram, Sandbox, urlOf } from "./support.ts";

const { GO_IPFS: reference } = process.env;

const hello = "QmZULkCELmmk5XNfCgTnCyFgAVxBRBXyDHGGMVoLFLiXEN";

/** The order matters: later calls see the effects of earlier ones. */
const calls: readonly (readonly string[])[] = [
  ["version"],
  ["add", "hello"],
  ["add", "-r", "-Q", "tree"],
  ["add", "--cid-version=1", "--only-hash", "-q", "hello"],
  ["cat", hello],
  ["ls", "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn"],
  ["ls", "-s", "bafybeiczsscdsbs7ffqz55asqdf3smv6klcw3gofszvwlyarci47bgf354"],
  ["pin", "ls", "--type=recursive", "-q", hello],
  ["pin", "rm", hello],
  ["pin", "rm", hello],
  ["block", "stat", hello],
  ["dag", "get", hello],
  ["object", "stat", hello],
  ["refs", "-r", hello],
  ["cid", "base32", hello],
  ["files", "mkdir", "-p", "/a/b"],
  ["files", "write", "--create", "/a/b/c", "hello"],
  ["files", "read", "/a/b/c"],
  ["files", "ls", "-l", "/a/b"],
  ["files", "stat", "/a"],
  ["files", "rm", "/none"],
  ["config", "Addresses.Gateway"],
  ["config", "Nothing.Here"],
  ["get", "-o", "got", hello],
  ["swarm", "peers"],
  ["bootstrap", "list"],
  ["cat", "/ipfs/nonsense"],
  ["shutdown"],
];

/** Replaces the ID of the node and the path of its folder, which differ. */
const plain = (text: string, sandbox: Sandbox, id: string) =>
  text.replaceAll(sandbox.folder, "FOLDER").replaceAll(id, "ID");

async function outcomes(sandbox: Sandbox, program: string) {
  const go = Sandbox.at(sandbox.folder, program);
  await mkdir(join(sandbox.folder, "tree", "sub"), { recursive: true });
  await writeFile(join(sandbox.folder, "hello"), "hello\n");
  await writeFile(join(sandbox.folder, "tree", "sub", "a"), "a\n");
  const daemon = await sandbox.daemon([]);
  const { ID } = JSON.parse(await (await fetch(`${urlOf(await sandbox.api())}/api/v0/id`, { method: "POST" })).text());
  assert.equal(await go.done(["id", "-f", "<id>"]), ID);
  const results: string[] = [];
  for (const words of calls) {
    const { code, stdout, stderr } = await go.run(words);
    results.push(plain(`${words.join(" ")}: ${code}\n${stdout}${stderr}`, sandbox, ID));
  }
  assert.equal((await daemon.ended).code, 0);
  results.push(await readFile(join(sandbox.folder, "got"), "utf8"));
  return results;
}

const skip = reference === undefined && "GO_IPFS does not name the program of go-ipfs";

test("the command line of go-ipfs gets the same results from this daemon as from its own", { skip }, async () => {
  const program = reference as string;
  await using own = await Sandbox.withRepo();
  await using theirs = await Sandbox.make(program);
  await theirs.done(["init", "--profile=test", "--empty-repo"]);
  assert.deepEqual(await outcomes(own, program), await outcomes(theirs, program));
});

test("a repo of go-ipfs is served, and go-ipfs cannot open it meanwhile", { skip }, async () => {
  await using theirs = await Sandbox.make(reference as string);
  await theirs.done(["init", "--profile=test"]);
  await theirs.done(["add", "-Q"], { stdin: "hello\n" });
  await theirs.done(["files", "mkdir", "-p", "/old/days"]);
  const id = await theirs.done(["id", "-f", "<id>"]);
  const pins = await theirs.done(["pin", "ls", "--type=recursive"]);

  const ours = Sandbox.at(theirs.folder, ownProgram);
  const daemon = await ours.daemon();
  assert.equal(await theirs.done(["id", "-f", "<id>"]), id);
  assert.equal(await theirs.done(["cat", hello]), "hello\n");
  assert.equal(await theirs.done(["files", "ls", "/old"]), "days\n");
  const inOrder = (text: string) => text.trimEnd().split("\n").sort();
  assert.deepEqual(inOrder(await theirs.done(["pin", "ls", "--type=recursive"])), inOrder(pins));
  const refused = await theirs.run(["daemon"]);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /repo\.lock/);
  assert.equal((await daemon.stop()).code, 0);

  const again = await theirs.daemon();
  const late = await ours.run(["daemon", "--offline"]);
  assert.deepEqual(
    [late.code, late.stderr],
    [1, `Error: lock ${join(theirs.repo, "repo.lock")}: someone else has the lock\n`],
  );
  assert.equal(await theirs.done(["cat", hello]), "hello\n");
  await again.stop();
});

test("the command line of go-ipfs connects through a Unix socket", { skip }, async () => {
  await using folder = await Sandbox.make();
  const socket = join(folder.folder, "api.sock");
  await using own = await Sandbox.withRepo({ "Addresses.API": ["/ip4/127.0.0.1/tcp/0", `/unix${socket}`] });
  const daemon = await own.daemon();
  const elsewhere = Sandbox.at(folder.folder, reference as string);
  assert.equal(
    await elsewhere.done([`--api=/unix${socket}`, "id", "-f", "<id>"]),
    await own.does(["id", "-f", "<id>"]),
  );
  await daemon.stop();
});
