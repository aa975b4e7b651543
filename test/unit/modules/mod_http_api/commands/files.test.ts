import assert from "node:assert/strict";
import { test } from "node:test";
import { CID } from "multiformats/cid";
import { encodePb } from "#node/formats/dag_pb/dag_pb.ts";
import { encodeUnixfs } from "#node/formats/unixfs/format.ts";
import { goJson } from "#node/util/go/text.ts";
import { type RpcHost, startRpc } from "./support.ts";

let rpc: RpcHost;
test.before(async () => {
  rpc = await startRpc();
});
test.after(() => rpc.stop());

/** Makes a call that must return 200 and an empty body. */
async function done(path: string, content?: string): Promise<void> {
  const { status, text } = await rpc.call(path, content === undefined ? undefined : { data: content });
  assert.deepEqual([status, text], [200, ""], path);
}

const text = async (path: string) => (await rpc.call(path)).text;

test("a file is written, read in parts, described and removed", async () => {
  await done("files/write?arg=/a/b/f&create=true&parents=true", "0123456789");
  await done("files/write?arg=/a/b/f&offset=4&count=3", "abcdef");
  assert.equal(await text("files/read?arg=/a/b/f"), "0123abc789");
  assert.equal(await text("files/read?arg=/a/b/f&offset=3&count=2"), "3a");
  const stat = await rpc.value("files/stat?arg=/a/b/f&with-local=true");
  assert.deepEqual([stat.Size, stat.Type, stat.Local, stat.SizeLocal], [10, "file", true, stat.CumulativeSize]);
  assert.equal(
    await text("files/stat?arg=/a/b/f&format=<type>%20<size>%20<nothing>&encoding=text"),
    "file 10 <nothing>\n",
  );
  assert.match(
    await text("files/stat?arg=/a&with-local=true&encoding=text"),
    /\nType: directory\nLocal: \d+ B of \d+ B \(100\.00%\)\n$/,
  );
  assert.deepEqual(await rpc.failure("files/rm?arg=/a"), [500, "/a is a directory, use -r to remove directories"]);
  await done("files/rm?arg=/a/&recursive=true&arg=/not/looked/at");
  assert.deepEqual(await rpc.value("files/ls"), { Entries: null });
});

test("a body without a file is refused, and creates neither the file nor its parent directories", async () => {
  const folder = new FormData();
  folder.append("file", new File([], "d", { type: "application/x-directory" }));
  for (const [body, message] of [
    [folder, "file argument was nil"],
    [new FormData(), "expected a file argument"],
  ] as const) {
    const url = `http://127.0.0.1:${rpc.http}/api/v0/files/write?arg=/above/left&create=true&parents=true`;
    const response = await fetch(url, { method: "POST", body });
    assert.deepEqual([response.status, ((await response.json()) as { Message: string }).Message], [500, message]);
    assert.deepEqual(await rpc.failure("files/stat?arg=/above"), [500, "file does not exist"]);
  }
});

test("invalid options are refused before anything changes", async () => {
  assert.deepEqual(await rpc.failure("files/write?arg=/n&create=true&count=-1", { data: "x" }), [
    500,
    "cannot have negative byte count",
  ]);
  assert.deepEqual(await rpc.failure("files/write?arg=/n&create=true&offset=-1", { data: "x" }), [
    500,
    "cannot have negative write offset",
  ]);
  assert.deepEqual(await rpc.failure("files/stat?arg=/&hash=true&size=true"), [
    400,
    "format was set by multiple options. Only one format option is allowed",
  ]);
  assert.deepEqual(await rpc.failure("files/stat?arg=/n"), [500, "file does not exist"]);
});

test("a long list is complete and sorted in every form", async () => {
  const names = Array.from({ length: 5000 }, (_, at) => `entry-${String(at).padStart(4, "0")}`);
  const cid = CID.parse("bafkqabtimvwgy3yk");
  const data = encodeUnixfs({ type: "Directory" });
  const body = new FormData();
  body.append("data", new File([encodePb({ data, links: names.map((name) => ({ name, cid, size: 6 })) })], "block"));
  const put = await fetch(`http://127.0.0.1:${rpc.http}/api/v0/block/put?format=v0`, { method: "POST", body });
  await done(`files/cp?arg=/ipfs/${((await put.json()) as { Key: string }).Key}&arg=/long`);
  const { Entries } = await rpc.value<{ Entries: { Name: string; Size: number; Hash: string }[] }>(
    "files/ls?arg=/long&long=true",
  );
  assert.deepEqual(
    Entries.map(({ Name }) => Name),
    names,
  );
  assert.deepEqual(Entries[4999], { Name: "entry-4999", Type: 0, Size: 6, Hash: cid.toString() });
  assert.equal(await text("files/ls?arg=/long&encoding=text"), `${names.join("\n")}\n`);
});

test("a long list has the same JSON form as a short one, whatever the names are", async () => {
  const odd = [
    '"',
    "\\",
    "<&>",
    "\u2028",
    "\u007f",
    "tab\t",
    "nul\0",
    "ü",
    "\u{1f600}",
    "{}[]=~ ",
    "a name of more than sixteen",
  ];
  const names = odd.flatMap((name) => Array.from({ length: 400 }, (_, at) => `${name}${at}`));
  const cid = CID.parse("bafkqabtimvwgy3yk");
  const data = encodeUnixfs({ type: "Directory" });
  const put = async (count: number) => {
    const links = names.slice(0, count).map((name) => ({ name, cid, size: 6 }));
    const body = new FormData();
    body.append("data", new File([encodePb({ data, links })], "block"));
    const response = await fetch(`http://127.0.0.1:${rpc.http}/api/v0/block/put?format=v0`, { method: "POST", body });
    return ((await response.json()) as { Key: string }).Key;
  };
  const short = await put(names.length - 500);
  const long = await put(names.length);
  for (const path of [
    `ls?arg=`,
    "ls?size=false&resolve-type=false&arg=",
    "files/ls?long=true&arg=/ipfs/",
    "files/ls?arg=/ipfs/",
  ]) {
    for (const root of [short, long]) {
      const given = await text(`${path}${root}`);
      assert.equal(given, `${goJson(JSON.parse(given))}\n`, path);
    }
  }
  const { Objects } = await rpc.value<{ Objects: [{ Links: { Name: string }[] }] }>(`ls?arg=${long}`);
  assert.deepEqual(Objects[0].Links.map(({ Name }) => Name).toSorted(), names.toSorted());
});

test("a repeated list has later changes, and reports blocks that are missing since", async () => {
  await done("files/mkdir?arg=/again");
  const write = (name: string) => done(`files/write?arg=/again/${name}&create=true`, name);
  const listed = async () => {
    const lists = await Promise.all([0, 1].map(() => text("files/ls?arg=/again&long=true")));
    assert.equal(lists[0], lists[1]);
    assert.equal(await text("files/ls?arg=/again&long=true"), lists[0]);
    return (JSON.parse(lists[0] as string).Entries as { Name: string; Hash: string }[]) ?? [];
  };
  assert.deepEqual(await listed(), []);
  await write("one");
  assert.deepEqual(
    (await listed()).map(({ Name }) => Name),
    ["one"],
  );
  await write("two");
  const [one, two] = await listed();
  assert.deepEqual([one?.Name, two?.Name], ["one", "two"]);
  assert.deepEqual(await rpc.value("files/ls?arg=/again"), {
    Entries: ["one", "two"].map((Name) => ({ Name, Type: 0, Size: 0, Hash: "" })),
  });
  await rpc.call(`block/rm?arg=${two?.Hash}`);
  assert.match(String(await rpc.failure("files/ls?arg=/again&long=true")), /not found/);
  await done("files/rm?arg=/again&recursive=true&force=true");
});

test("content paths are accepted as sources", async () => {
  assert.deepEqual(await rpc.failure("files/cp?arg=/ipfs/nope&arg=/x"), [
    500,
    'cp: cannot get node from path /ipfs/nope: invalid path "/ipfs/nope": invalid CID: selected encoding not supported',
  ]);
  assert.equal((await rpc.value("files/stat?arg=/ipfs/bafkqabtimvwgy3yk")).Size, 6);
  assert.deepEqual(await rpc.failure("files/read?arg=/ipfs/bafkqabtimvwgy3yk"), [500, "file does not exist"]);
  assert.deepEqual(await rpc.failure("files/mkdir?arg=relative"), [500, "paths must start with a leading slash"]);
  assert.deepEqual(await rpc.failure("files/mkdir?arg="), [500, "paths must not be empty"]);
});

test("names may contain anything but a slash", async () => {
  for (const name of ["nul\0", "..x", "ü<>&", "__proto__", "line\nfeed"]) {
    const path = encodeURIComponent(`/odd/${name}`);
    await done(`files/write?arg=${path}&create=true&parents=true`, name);
    assert.equal(await text(`files/read?arg=${path}`), name);
  }
  const { Entries } = await rpc.value<{ Entries: { Name: string }[] }>("files/ls?arg=/odd/../odd/./");
  assert.deepEqual(Entries.map(({ Name }) => Name).sort(), ["..x", "__proto__", "line\nfeed", "nul\0", "ü<>&"].sort());
  await done("files/rm?arg=/odd&recursive=true");
});
