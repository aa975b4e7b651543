/** The command line of the reference, beside its own daemon and beside ours: the same words, the same outcome. */
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ownProgram, Place, urlOf } from "./support.ts";

const { GO_IPFS: reference } = process.env;

const hello = "QmZULkCELmmk5XNfCgTnCyFgAVxBRBXyDHGGMVoLFLiXEN";

/** In this order: later ones see what earlier ones did. */
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

/** What of it names the own node or folder. */
const plain = (text: string, place: Place, id: string) => text.replaceAll(place.folder, "FOLDER").replaceAll(id, "ID");

async function outcomes(place: Place, program: string) {
  const go = Place.at(place.folder, program);
  await mkdir(join(place.folder, "tree", "sub"), { recursive: true });
  await writeFile(join(place.folder, "hello"), "hello\n");
  await writeFile(join(place.folder, "tree", "sub", "a"), "a\n");
  const daemon = await place.daemon([]);
  const { ID } = JSON.parse(await (await fetch(`${urlOf(await place.api())}/api/v0/id`, { method: "POST" })).text());
  assert.equal(await go.done(["id", "-f", "<id>"]), ID);
  const told: string[] = [];
  for (const words of calls) {
    const { code, stdout, stderr } = await go.run(words);
    told.push(plain(`${words.join(" ")}: ${code}\n${stdout}${stderr}`, place, ID));
  }
  assert.equal((await daemon.ended).code, 0);
  told.push(await readFile(join(place.folder, "got"), "utf8"));
  return told;
}

const skip = reference === undefined && "GO_IPFS does not name the reference's program";

test("the reference's command line does with this daemon what it does with its own", { skip }, async () => {
  const program = reference as string;
  await using own = await Place.withRepo();
  await using theirs = await Place.make(program);
  await theirs.done(["init", "--profile=test", "--empty-repo"]);
  assert.deepEqual(await outcomes(own, program), await outcomes(theirs, program));
});

test("a repo that the reference has made is served, and is not the reference's meanwhile", { skip }, async () => {
  await using theirs = await Place.make(reference as string);
  await theirs.done(["init", "--profile=test"]);
  await theirs.done(["add", "-Q"], { stdin: "hello\n" });
  await theirs.done(["files", "mkdir", "-p", "/old/days"]);
  const [id, pins] = [await theirs.done(["id", "-f", "<id>"]), await theirs.done(["pin", "ls", "--type=recursive"])];

  const ours = Place.at(theirs.folder, ownProgram);
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

test("the reference's command line comes in through a Unix socket", { skip }, async () => {
  await using folder = await Place.make();
  const socket = join(folder.folder, "api.sock");
  await using own = await Place.withRepo({ "Addresses.API": ["/ip4/127.0.0.1/tcp/0", `/unix${socket}`] });
  const daemon = await own.daemon();
  const elsewhere = Place.at(folder.folder, reference as string);
  assert.equal(
    await elsewhere.done([`--api=/unix${socket}`, "id", "-f", "<id>"]),
    await own.does(["id", "-f", "<id>"]),
  );
  await daemon.stop();
});
