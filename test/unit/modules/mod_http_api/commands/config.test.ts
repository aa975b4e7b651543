import assert from "node:assert/strict";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type RpcHost, startRpc } from "./support.ts";

let host: RpcHost;
before(async () => {
  host = await startRpc({ api_config_edit: true });
});
after(() => host.stop());

test("values are read and written as text, bool or JSON", async () => {
  assert.deepEqual(await host.value("config?arg=Gateway.RootRedirect&arg=/x"), {
    Key: "Gateway.RootRedirect",
    Value: "/x",
  });
  assert.deepEqual(await host.value("config/Gateway.RootRedirect"), { Key: "Gateway.RootRedirect", Value: "/x" });
  const written = async (query: string) => (await host.value(`config?arg=Mine&arg=${query}`)).Value;
  assert.equal(await written("true"), "true");
  assert.equal(await written("true&bool=true"), true);
  assert.equal(await written("yes&bool=true"), false);
  assert.deepEqual(await written("[1]&json=true&bool=true"), [1]);
  assert.equal(await written("null&json=true"), null);
});

test("errors have the messages of go-ipfs", async () => {
  assert.deepEqual(await host.failure("config"), [400, 'argument "key" is required\n']);
  assert.deepEqual(await host.failure("config?arg=Mine&arg=01&json=true"), [
    500,
    "failed to unmarshal json. invalid character '1' after top-level value",
  ]);
  assert.deepEqual(await host.failure("config?arg=Identity&arg=1&json=true"), [
    500,
    "cannot show or change private key through API",
  ]);
  assert.deepEqual(await host.failure("config/replace", { c: "x" }), [500, "failed to decode file as config"]);
  assert.deepEqual(await host.failure("config/replace", { c: " ".repeat(262_145) }), [
    500,
    "failed to decode file as config: it is longer than 196608 bytes",
  ]);
  assert.deepEqual(await host.failure("config/replace"), [400, "file argument 'file' is required\n"]);
  assert.deepEqual(await host.failure("config/profile/apply?arg=odd"), [500, "odd is not a profile"]);
});

test("the text form of a value has no quotes, and a write prints nothing", async () => {
  assert.equal((await host.call("config?arg=Routing.Type&encoding=text")).text, "dht\n");
  assert.equal(
    (await host.call("config?arg=Discovery.MDNS&encoding=text")).text,
    '{\n  "Enabled": false,\n  "Interval": 10\n}\n',
  );
  assert.equal((await host.call("config?arg=Routing.Type&arg=none&encoding=text")).text, "");
});

test("the shown configuration can be sent back", async () => {
  const shown = await host.call("config/show");
  assert.doesNotMatch(shown.text, /PrivKey/);
  assert.deepEqual(await host.call("config/replace", { config: shown.text }), { status: 200, text: "", lines: [] });
  assert.deepEqual((await host.call("config/show")).text, shown.text);
  const printed = (await host.call("config/show?encoding=text")).text;
  assert.deepEqual(JSON.parse(printed), shown.lines[0]);
  assert.match(printed, /^\{\n {2}"API": \{\n {4}"HTTPHeaders": \{\}\n {2}\},\n/);
});

test("a profile returns the configuration before and after, and as text a coloured diff", async () => {
  const { OldCfg, NewCfg } = await host.value<Record<string, { Routing: unknown }>>(
    "config/profile/apply?arg=lowpower&dry-run=1",
  );
  assert.deepEqual([OldCfg?.Routing, NewCfg?.Routing], [{ Type: "none" }, { Type: "dhtclient" }]);
  const { text } = await host.call("config/profile/apply?arg=lowpower&encoding=text");
  const wanted = [
    '"Routing": {',
    '\x1b[33m    <> "Type": "none"',
    '    ** "Type": "dhtclient"\x1b[0m',
    "    },",
    '"Swarm": {',
  ];
  assert.ok(text.includes(wanted.join("\n")), text);
  assert.ok(text.includes('\n"AutoNAT": {\n\x1b[32m    << "ServiceMode": "disabled"\x1b[0m\n    },\n'));
  assert.equal((await host.value("config?arg=Routing.Type")).Value, "dhtclient");
});

test("the host's editor edits a copy, which is validated", async () => {
  const editor = join(host.folder, "editor");
  const { EDITOR: own } = process.env;
  const edit = async (command: string) => {
    await writeFile(editor, `#!/bin/sh\n${command}\n`);
    await chmod(editor, 0o755);
    return host.call("config/edit");
  };
  try {
    process.env.EDITOR = editor;
    assert.equal((await edit('sed -i "s#\\"dhtclient\\"#\\"none\\"#" "$1"')).status, 200);
    assert.equal((await host.value("config?arg=Routing.Type")).Value, "none");
    assert.match((await edit("exit 3")).text, /the editor ended with status 3; nothing was changed/);
    assert.match((await edit('echo "{" > "$1"')).text, /failure to decode config: unexpected end of JSON input/);
    delete process.env.EDITOR;
    assert.deepEqual(await host.failure("config/edit"), [500, "ENV variable $EDITOR not set"]);
    assert.match(await readFile(join(host.folder, "data/repo/config"), "utf8"), /"PrivKey": "CAES/);
  } finally {
    if (own !== undefined) process.env.EDITOR = own;
  }
});

test("responses have the configured headers", async () => {
  await host.call(`config?arg=API.HTTPHeaders&json=1&arg=${encodeURIComponent('{"X-Mine":["a"],"X-Null":null}')}`);
  const response = await fetch(`http://127.0.0.1:${host.http}/api/v0/version`, { method: "POST" });
  assert.equal(response.headers.get("x-mine"), "a");
  await response.arrayBuffer();
});

test("secrets of callers are returned by config, as in Kubo, and left out of config/show", async () => {
  await using own = await startRpc();
  const all = { AuthSecret: "bearer:everything", AllowedPaths: ["/api/v0"] };
  await own.value(`config?arg=API.Authorizations.all&arg=${encodeURIComponent(JSON.stringify(all))}&json=true`);
  const value = async <T>(path: string): Promise<T> => {
    const headers = { authorization: "Bearer everything" };
    const response = await fetch(`http://127.0.0.1:${own.http}/api/v0/${path}`, { method: "POST", headers });
    return (await response.json()) as T;
  };
  // The secrets are required from the next call on.
  assert.equal((await own.call("config?arg=API")).status, 403);
  const { Value } = await value<{ Value: { Authorizations: unknown } }>("config?arg=API");
  assert.deepEqual(Value.Authorizations, { all });
  const secret = await value<{ Value: unknown }>("config?arg=API.Authorizations.all.AuthSecret");
  assert.equal(secret.Value, all.AuthSecret);
  const { API } = await value<{ API: { Authorizations: unknown } }>("config/show");
  assert.deepEqual(API.Authorizations, {});
});
