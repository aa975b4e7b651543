import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type RpcHost, startRpc } from "#test/unit/modules/mod_http_api/commands/support.ts";
import { ask, multipart, type SentPart } from "#test/unit/modules/mod_http_api/support.ts";

let host: RpcHost;
before(async () => {
  host = await startRpc();
});
after(() => host?.stop());

interface Added {
  readonly Name: string;
  readonly Hash: string;
}

async function add(path: string, parts: readonly SentPart[]) {
  const reply = await ask(host.http, path, multipart(parts));
  const added = reply.body.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line) as Added]));
  return { ...reply, added };
}

async function listed(cid: string): Promise<string[]> {
  const { Objects } = JSON.parse((await ask(host.http, `ls?arg=${cid}`)).body) as {
    Objects: { Links: { Name: string }[] }[];
  };
  return (Objects[0]?.Links ?? []).map(({ Name }) => Name);
}

test("a name up to the limit of a part's head is accepted, and returned in listings and archives", async () => {
  const name = "n".repeat(60_000);
  const { status, added } = await add("add?wrap-with-directory=true", [{ filename: name, content: "long" }]);
  assert.deepEqual([status, added[0]?.Name], [200, name]);
  const folder = added.at(-1)?.Hash as string;
  assert.deepEqual(await listed(folder), [name]);
  assert.ok((await ask(host.http, `get?arg=${folder}`)).body.includes(`path=${folder}/${name}\n`));
});

test("a longer name is refused with a message, and the next call on the connection succeeds", async () => {
  const { status, body } = await add("add", [{ filename: "n".repeat(70_000), content: "x" }]);
  assert.equal(status, 500, body);
  assert.match((JSON.parse(body) as { Message: string }).Message, /head|header/i);
  assert.equal((await ask(host.http, "version")).status, 200);
});

test("names cannot escape, and odd ones are kept unchanged", async () => {
  const odd = ["%00", "a%00b", "%0A", "%22", "%5C..%5C..%5Cx", "C:", "...", "%E2%80%AE", "-rf", "%EF%BF%BD"];
  const climbing: [sent: string, name: string][] = [
    ["../../../etc/passwd", "etc/passwd"],
    ["%2e%2e%2f%2e%2e%2fx", "x"],
    ["/absolute", "absolute"],
    ["a/../../b", "b"],
    ["./c//d", "c/d"],
  ];
  const parts = [
    ...odd.map((filename) => ({ filename, content: filename })),
    ...climbing.map(([filename]) => ({ filename, content: filename })),
  ];
  const { status, added } = await add("add?wrap-with-directory=true", parts);
  assert.equal(status, 200);
  const names = new Set(added.map(({ Name }) => Name));
  for (const sent of odd) assert.ok(names.has(decodeURIComponent(sent)), sent);
  for (const [sent, name] of climbing) assert.ok(names.has(name), sent);
  const root = added.at(-1)?.Hash as string;
  const wanted = [...odd.map(decodeURIComponent), "etc", "x", "absolute", "b", "c"].sort();
  assert.deepEqual((await listed(root)).sort(), wanted);
  const { status: got } = await ask(host.http, `get?arg=${root}`);
  assert.equal(got, 200);
  const stat = await ask(host.http, `block/stat?arg=${root}%00`);
  assert.equal(stat.status, 500);
});

test("3,000 parts become 3,000 files, and a directory of them", async () => {
  const parts = Array.from({ length: 3000 }, (_, at) => ({ filename: `d/${at}`, content: `${at}` }));
  const { status, added, trailers } = await add("add?pin=false", parts);
  assert.deepEqual([status, trailers["x-stream-error"]], [200, undefined]);
  assert.equal(added.length, 3001);
  assert.equal((await listed(added.at(-1)?.Hash as string)).length, 3000);
});

test("20,000 empty parts for a command without files are skipped", async () => {
  const parts = Array.from({ length: 20_000 }, () => ({ content: "" }));
  assert.equal((await ask(host.http, "version", multipart(parts))).status, 200);
});

test("a name of thousands of levels becomes a tree of that depth", async () => {
  const levels = 3500;
  const body = new FormData();
  body.append("file", new Blob(["deep"]), Array.from({ length: levels }, () => "d").join("%2F"));
  const response = await fetch(`http://127.0.0.1:${host.http}/api/v0/add`, { method: "POST", body });
  const lines = (await response.text()).trimEnd().split("\n");
  assert.equal(response.status, 200, lines[0]);
  assert.equal(lines.length, levels);
  assert.equal((JSON.parse(lines.at(-1) as string) as Added).Name, "d");
});
