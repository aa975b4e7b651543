import assert from "node:assert/strict";
import { test } from "node:test";
import { type BodyTree, multipart, multipartType } from "#test/contract/vectors/content.ts";
import { clientOfHost } from "./support.ts";

const of = clientOfHost();

const text = (content: string) => ({ file: { text: content } });

/** Makes a call with a query as text, and a tree as the body. */
async function call(path: string, tree?: BodyTree) {
  const [command = "", query = ""] = path.split("?");
  const body = tree && multipart(tree);
  const reply = await of.client.call(command, { query: [...new URLSearchParams(query)], body });
  const content = reply.body.toString();
  const lines = () => content.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)]));
  return { ...reply, text: content, lines };
}

/** Adds a tree and returns the CIDs by name. */
async function add(tree: BodyTree, query = ""): Promise<Record<string, string>> {
  const { lines } = await call(`add?${query}`, tree);
  return Object.fromEntries(lines().map(({ Name, Hash }) => [Name, Hash]));
}

test("a missing block is reported in the trailer, or at once if the response would begin behind it", async () => {
  const content = { big: { file: { repeat: { text: "0123456789", count: 300 } } } };
  const { big = "" } = await add(content, "pin=false&raw-leaves=true&chunker=rabin-100-200-300");
  const refs = (await call(`refs?arg=${big}`)).lines().map(({ Ref }) => Ref as string);
  const third = (await call(`ls?arg=${big}`)).lines()[0].Objects[0].Links[2];
  const [first, second] = (await call(`ls?arg=${big}`)).lines()[0].Objects[0].Links;
  assert.ok(refs.includes(third.Hash));
  // Pieces of such a text repeat, so the test avoids one that occurs twice.
  await call(`block/rm?arg=${third.Hash}`);
  const start = first.Size + second.Size;
  const whole = await call(`cat?arg=${big}`);
  assert.equal(whole.status, 200);
  assert.equal(whole.headers["x-content-length"], "3000");
  assert.equal(whole.trailer, "failed to fetch all nodes");
  const behind = await call(`cat?arg=${big}&offset=${start}`);
  assert.deepEqual([behind.status, behind.lines()[0].Message], [500, "failed to fetch all nodes"]);
});

test("a file inlined in its CID is added, read and used, but a pin limits the length of its CID", async () => {
  const tree = { f: { file: { repeat: { text: "0123456789", count: 300 } } } };
  const { f: short = "" } = await add({ f: text("x".repeat(1000)) }, "inline=true&inline-limit=1100&cid-version=1");
  assert.equal((await call(`pin/ls?arg=${short}`)).status, 200);
  const query = "inline=true&inline-limit=1000000&cid-version=1";
  const refused = await call(`add?${query}`, tree);
  assert.equal(refused.status, 400);
  const listedText =
    /^a CID of 4\d{3} characters cannot be pinned, at most 1900: add with a smaller inline-limit, or with pin=false$/;
  assert.match(refused.lines()[0].Message, listedText);
  const { f: long = "" } = await add(tree, `${query}&pin=false`);
  assert.equal((await call(`cat?arg=${long}`)).text.length, 3000);
  const pinned = await call(`pin/add?arg=${long}`);
  assert.equal(pinned.status, 400);
  assert.match(pinned.lines()[0].Message, /cannot be pinned, at most 1900/);
  for (const [path, message] of [
    [`pin/rm?arg=${long}`, "not pinned or pinned indirectly"],
    [`pin/ls?arg=${long}`, `path '${long}' is not pinned`],
  ] as const) {
    const { status, lines } = await call(path);
    assert.deepEqual([status, lines()[0].Message], [500, message]);
  }
  assert.equal((await call(`files/cp?arg=/ipfs/${long}&arg=/long`)).status, 200);
  assert.equal((await call("files/read?arg=/long")).text.length, 3000);
  assert.equal((await call("files/rm?arg=/long")).status, 200);
});

test("a truncated body adds what arrived, and reports the error at the end", async () => {
  const { body } = multipart({ f: text("all of this") });
  const cut = { type: multipartType, body: body.subarray(0, body.length - 40) };
  const { status, trailer, body: response } = await of.client.call("add", { body: cut });
  assert.equal(status, 200);
  assert.equal(trailer, "multipart: NextPart: EOF");
  assert.equal(JSON.parse(response.toString()).Name, "f");
});

test("pins are listed in both shapes, as a whole and one by one", async () => {
  const { d } = await add({ d: { dir: { a: text("pinned a") } } });
  const whole = (await call(`pin/ls?arg=${d}`)).lines()[0];
  const entry = { [d as string]: { Type: "recursive" } };
  assert.deepEqual(whole, { Keys: entry, PinLsList: { Keys: entry } });
  const streamed = (await call("pin/ls?stream=true&type=recursive")).lines().find(({ Cid }) => Cid === d);
  const pin = { Cid: d, Type: "recursive" };
  assert.deepEqual(streamed, { ...pin, PinLsObject: pin });
  assert.match((await call("pin/ls?stream=true&encoding=text&quiet=true")).text, new RegExp(`^${d}$`, "m"));
});

test("an object that is not pinned ends the list after the objects before it", async () => {
  const { d } = await add({ d: { dir: { a: text("listed a") } } });
  const reply = await call(`pin/ls?arg=${d}/a&arg=bafkqaaa&arg=x&stream=true`);
  assert.deepEqual([reply.status, reply.lines().length], [200, 1]);
  assert.equal(reply.trailer, "path 'bafkqaaa' is not pinned");
});

test("progress of pinning ends with the count, then the pins", async () => {
  const { d } = await add({ d: { dir: { a: text("progress a"), b: text("progress b") } } }, "pin=false");
  assert.deepEqual((await call(`pin/add?arg=${d}&progress=true`)).lines(), [{ Progress: 3 }, { Pins: [d] }]);
  assert.deepEqual((await call(`pin/add?arg=${d}&progress=true`)).lines(), [{ Pins: [d] }]);
});

test("text lists have columns, and headings if there are several", async () => {
  const { d } = await add({ d: { dir: { a: text("12345"), e: { dir: {} }, "b\x07": text("") } } });
  const [hashA, hashB, hashE] = (await call(`ls?arg=${d}`))
    .lines()[0]
    .Objects[0].Links.map(({ Hash }: { Hash: string }) => Hash);
  const table = `${hashA} 5 a\n${hashB} 0 b\\a\n${hashE} - e/\n`;
  assert.equal((await call(`ls?arg=${d}&encoding=text`)).text, table);
  assert.equal((await call(`ls?arg=${d}&arg=${d}/e&encoding=text`)).text, `${d}:\n${table}\n${d}/e:\n`);
  const head = `${"Hash".padEnd(46)} Size Name\n`;
  const wide = table.replaceAll(/ (\d|-) /g, " $1    ");
  assert.equal((await call(`ls?arg=${d}&headers=true&encoding=text`)).text, head + wide);
});

test("an upload without files is an error", async () => {
  for (const command of ["add", "block/put"]) {
    const reply = await call(command, {});
    assert.deepEqual([reply.status, reply.lines()[0].Message], [500, "expected a file argument"]);
  }
});

test("removing many blocks reports each in order", async () => {
  const { d, "d/a": a } = await add({ d: { dir: { a: text("kept a") } } });
  const loose = (await call("block/put?format=raw", { data: text("loose") })).lines()[0].Key;
  const { text: listedText } = await call(`block/rm?arg=${d}&arg=${loose}&arg=${a}&arg=${loose}&encoding=text`);
  assert.equal(
    listedText,
    `cannot remove ${d}: pinned: recursive\nremoved ${loose}\n` +
      `cannot remove ${a}: pinned via ${d}\ncannot remove ${loose}: blockstore: block not found\n`,
  );
});

test("a directory without a name is the empty directory, pinned", async () => {
  const hash = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";
  await call(`pin/rm?arg=${hash}`);
  const boundary = "x";
  const response = await fetch(`http://127.0.0.1:${of.host.http}/api/v0/add`, {
    method: "POST",
    headers: { "content-type": `multipart/form-data; boundary=${boundary}` },
    body: `--${boundary}\r\nContent-Type: application/x-directory\r\n\r\n\r\n--${boundary}--\r\n`,
  });
  assert.equal(response.status, 200);
  assert.equal(await response.text(), `{"Name":"","Hash":"${hash}","Size":"4"}\n`);
  const { lines } = await call(`pin/ls?arg=${hash}`);
  assert.deepEqual(lines()[0].Keys, { [hash]: { Type: "recursive" } });
});
