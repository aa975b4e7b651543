import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type RpcHost, startRpc } from "#test/unit/modules/mod_http_api/commands/support.ts";
import { call, link, type Made, rawBlock, treeBlock } from "./lab.ts";

const empty = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";

let host: RpcHost;
before(async () => {
  host = await startRpc();
});
after(() => host?.stop());

const encoded = (values: readonly string[]) =>
  values.map((value) => `arg=${encodeURIComponent(value).replaceAll("%2F", "/")}`).join("&");

async function refusal(command: string, ...args: string[]) {
  const { status, message } = await call(host, `${command}${command.includes("?") ? "&" : "?"}${encoded(args)}`);
  return [status, message];
}

async function succeeds(command: string, ...args: string[]) {
  const response = await call(host, `${command}${command.includes("?") ? "&" : "?"}${encoded(args)}`);
  assert.deepEqual([response.status, response.message], [200, undefined], `${command} ${args}`);
  return response;
}

describe("content paths", () => {
  const readers = ["ls", "cat", "get", "file/ls", "refs", "resolve", "pin/add", "block/get", "block/stat", "dag/get"];
  const more = ["dag/resolve", "object/get", "object/data", "object/links", "object/stat", "tar/cat"];
  const refused: readonly (readonly [path: string, message: string])[] = [
    [`${empty}\0`, `invalid path "${empty}\\x00": selected encoding not supported`],
    [`${empty}/a\0b`, `no link named "a\\x00b" under ${empty}`],
    ["\0", 'invalid path "\\x00": cid too short'],
    ["../../etc/passwd", 'invalid path "../../etc/passwd": selected encoding not supported'],
    ["/ipfs/../../etc/passwd", 'invalid path "/ipfs/../../etc/passwd": invalid CID: selected encoding not supported'],
    [`/ipfs/${empty}/../../etc/passwd`, "unsupported path namespace: etc"],
    [`/ipfs/${empty}/../x`, `invalid path "/ipfs/${empty}/../x": invalid CID: cid too short`],
    [`/ipfs/${empty}/..`, `invalid path "/ipfs/${empty}/..": empty`],
    ["/etc/passwd", 'invalid path "/etc/passwd": unknown namespace "etc"'],
    [`${empty}/__proto__`, `no link named "__proto__" under ${empty}`],
    [`${empty}/constructor/prototype`, `no link named "constructor" under ${empty}`],
  ];

  for (const [path, message] of refused) {
    test(`${JSON.stringify(path)} is refused by every reader, with the reason`, async () => {
      for (const command of [...readers, ...more]) {
        assert.deepEqual(await refusal(command, path), [500, message], command);
      }
    });
  }

  test("links may have any name, and are found by it", async () => {
    for (const name of ["..", ".", "a\0b", "__proto__", "toString", "a\nb"]) {
      const { values } = await succeeds("object/patch/add-link", empty, name, empty);
      const [{ Hash }] = values as [{ Hash: string }];
      const { Links } = (await succeeds("object/links", Hash)).values[0] as { Links: { Name: string }[] };
      assert.deepEqual(
        Links.map(({ Name }) => Name),
        [name],
      );
      assert.equal((await succeeds("object/patch/rm-link", Hash, name)).values[0]?.Hash, empty);
    }
    for (const name of ["../..", "a/../b", "/a"]) {
      assert.deepEqual(await refusal("object/patch/add-link", empty, name, empty), [500, "no link by that name"]);
    }
    assert.deepEqual(await refusal("object/patch/add-link", empty, "", empty), [
      500,
      "cannot create link with no name",
    ]);
  });

  test("paths in archives are refused if unpacking would write outside of the root", async () => {
    for (const name of ["..", ".", "../x", "a/../../x"]) {
      const folder = await put(treeBlock({ type: "Directory" }, [link(name, file)]));
      const { status, message, bytes } = await call(host, `get?arg=${folder}`);
      assert.deepEqual(
        [status, message],
        [200, "relative UnixFS paths outside the root are not allowed, use CAR instead"],
      );
      assert.ok(!bytes.includes("content"), name);
      assert.equal((await call(host, `dag/export?arg=${folder}`)).message, undefined);
    }
    const folder = await put(treeBlock({ type: "Directory" }, [link("..x", file), link("a/../b", file)]));
    assert.equal((await call(host, `get?arg=${folder}`)).message, undefined);
  });
});

const file = rawBlock("content");

/** Stores a block without checks of names, and returns its CID. */
async function put({ bytes }: Made): Promise<string> {
  const leaf = await call(host, "block/put?format=raw", file.bytes);
  assert.equal(leaf.message, undefined);
  const { values } = await call<{ Key: string }>(host, "block/put?format=protobuf", bytes);
  return (values[0] as { Key: string }).Key;
}

describe("paths of the mutable namespace", () => {
  test("paths with .. stop at the root, and those with zero bytes are ordinary names", async () => {
    const outside = await readdir(host.folder);
    await succeeds("files/mkdir?parents=true", "/../../etc/passwd");
    assert.equal((await succeeds("files/stat", "/etc/passwd")).values[0]?.Hash, empty);
    await succeeds("files/mkdir", "/a\0");
    await succeeds("files/mv", "/a\0", "/etc/../b\0");
    const listed = (await succeeds("files/ls", "/..")).values[0] as { Entries: { Name: string }[] };
    assert.deepEqual(
      listed.Entries.map(({ Name }) => Name),
      ["b\0", "etc"],
    );
    for (const path of ["/..", "/../..", "/x/../", "/./"]) {
      assert.deepEqual(await refusal("files/rm?force=true", path), [500, "cannot delete root"]);
      assert.deepEqual(await refusal("files/mv", path, "/x"), [500, "file does not exist"]);
      assert.deepEqual(await refusal("files/mkdir", path), [500, "cannot create directory '/': Already exists"]);
    }
    for (const path of ["..", "../etc", "\0/a", "etc"]) {
      for (const command of ["files/stat", "files/ls", "files/read", "files/mkdir", "files/rm"]) {
        assert.deepEqual(await refusal(command, path), [500, "paths must start with a leading slash"], command);
      }
    }
    await succeeds("files/rm?recursive=true", "/etc");
    assert.deepEqual(await readdir(host.folder), outside);
  });

  test("paths with as many parts as a query can hold are followed, and refused if nothing is there", async () => {
    const deep = "/d".repeat(7900);
    await succeeds("files/mkdir?parents=true", deep);
    assert.equal((await succeeds("files/stat", deep)).values[0]?.Hash, empty);
    assert.deepEqual(await refusal("files/stat", `${deep}/none`), [500, "file does not exist"]);
    await succeeds("files/mkdir", `${deep}/one`);
    await succeeds("files/mv", `${deep}/one`, "/two");
    await succeeds("files/flush", "/");
    await succeeds("repo/gc");
    assert.equal((await succeeds("files/stat", deep)).values[0]?.Hash, empty);
    for (const path of ["/d", "/two"]) await succeeds("files/rm?recursive=true", path);
  });
});

test("names of keys and of subsystems are names, neither paths nor members of a prototype", async () => {
  const outside = await readdir(host.folder);
  for (const name of ["__proto__", "../../outside", "a\0b", "constructor"]) {
    await succeeds("key/gen", name);
    assert.match(
      JSON.stringify((await succeeds("key/list")).values[0]),
      new RegExp(JSON.stringify(name).slice(1, -1).replaceAll("\\", "\\\\").replaceAll(".", "\\.")),
    );
    await succeeds("key/rm", name);
  }
  assert.deepEqual(await readdir(host.folder), outside);
  assert.equal((await refusal("key/gen", ""))[0], 500);
  assert.equal((await refusal("log/level", "__proto__", "debug"))[0], 500);
  assert.equal((await refusal("log/level", "all", "toString"))[0], 500);
  assert.deepEqual(await refusal("config/profile/apply", "__proto__"), [500, "__proto__ is not a profile"]);
});

describe("keys of the configuration", () => {
  const none = (prefix: string) => `failed to get config value: "${prefix} key has no attributes"`;

  test("keys that are names of prototype members are ordinary keys at the top, and unknown below", async () => {
    for (const key of ["__proto__", "constructor", "toString", "hasOwnProperty"]) {
      assert.deepEqual(await refusal("config", key), [500, none("")]);
      for (const section of ["Addresses", "Identity", "Datastore.Spec.child"]) {
        const prefix = section === "Datastore.Spec.child" ? "Datastore" : section;
        const [status, message] = await refusal("config", `${section}.${key}`);
        assert.equal(status, 500, `${section}.${key}: ${message}`);
        if (section === prefix) assert.equal(message, none(section));
        const [written] = await refusal("config?json=true", `${prefix}.${key}`, '{"x":1}');
        assert.equal(written, 500);
      }
      assert.deepEqual((await succeeds("config?json=true", key, '{"x":1}')).values, [{ Key: key, Value: { x: 1 } }]);
      assert.deepEqual((await succeeds("config", `${key}.x`)).values, [{ Key: `${key}.x`, Value: 1 }]);
    }
    assert.equal(({} as { x?: unknown }).x, undefined);
    const file = JSON.parse(await readFile(join(host.folder, "data", "repo", "config"), "utf8")) as object;
    assert.ok(Object.hasOwn(file, "__proto__"));
    assert.equal((await succeeds("id")).status, 200);
  });

  test("keys that are names of prototype members stay ordinary keys in a replaced configuration", async () => {
    const shown = (await succeeds("config/show")).values[0] as Record<string, unknown>;
    const { message } = await call(
      host,
      "config/replace",
      JSON.stringify({ ...shown, constructor: { prototype: { y: 1 } } }),
    );
    assert.equal(message, undefined);
    assert.equal(({} as { y?: unknown }).y, undefined);
    const { Identity, Datastore } = shown;
    const whatItStartsWith = JSON.stringify({ Identity, Datastore }).slice(1);
    const nothingSaid = `{"__proto__":{"polluted":1},"Routing":{"__proto__":{"Type":"none"}},${whatItStartsWith}`;
    assert.equal((await call(host, "config/replace", nothingSaid)).message, undefined);
    assert.equal((await succeeds("config", "Routing.Type")).values[0]?.Value, "");
    assert.equal(({} as { polluted?: unknown }).polluted, undefined);
    for (const body of ["[".repeat(100_000), "{", "[]", '{"Addresses":[]}', '"config"']) {
      const { status, message } = await call(host, "config/replace", body);
      assert.deepEqual([status, message], [500, "failed to decode file as config"], body.slice(0, 20));
    }
    assert.equal((await succeeds("id")).status, 200);
  });
});
