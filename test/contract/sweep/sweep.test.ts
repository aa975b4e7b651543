/**
 * Tests on one running server that every option and every argument of every command without network
 * access has its effect.
 */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { openNode } from "#node/node/open.ts";
import { storageCommands } from "#test/support/storage_commands.ts";
import { entry } from "#test/support/tar.ts";
import { type RpcHost, startRpc } from "#test/unit/modules/mod_http_api/commands/support.ts";
import { call } from "#test/unit/modules/mod_http_api/faults/lab.ts";
import { multipart } from "#test/unit/modules/mod_http_api/support.ts";
import files from "./files.ts";
import keeping from "./keeping.ts";
import type { Sweep } from "./line.ts";
import node from "./node.ts";
import nodes from "./nodes.ts";
import reading from "./reading.ts";
import { gaps, Runner } from "./runner.ts";

const sweep: Sweep = { ...reading, ...nodes, ...files, ...keeping, ...node };

/** Long enough for more leaves than one node contains. */
const longWeb = Buffer.alloc(175 * 256 * 1024);
const shortWeb = 1024;
const web = createServer((request, response) => {
  const path = request.url?.slice(1) ?? "";
  const [size, salt] = path === "long" ? [longWeb.length, ""] : [shortWeb, path];
  const [, from = 0, to = size - 1] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
  const length = Number(to) - Number(from) + 1;
  response.writeHead(request.headers.range === undefined ? 200 : 206, { "content-length": length });
  response.end(path === "long" ? longWeb.subarray(Number(from), Number(to) + 1) : Buffer.alloc(length, `${salt} `));
});

let host: RpcHost;
let runner: Runner;

before(async () => {
  await new Promise<void>((resolve) => web.listen(0, "127.0.0.1", resolve));
  host = await startRpc({}, { prepare });
  runner = new Runner(host, await fixtures());
});
after(async () => {
  await host?.stop();
  web.close();
});

async function prepare(folder: string): Promise<void> {
  const made = await openNode({ repo: join(folder, "data/repo"), profile: "test" });
  for (const name of ["Filestore", "Urlstore"]) await made.repo.config.set(`Experimental.${name}Enabled`, () => true);
  await made.close();
  for (const name of ["backing", "twice"]) await writeFile(join(folder, "data", name), name);
}

/** Prepares the content that calls refer to. */
async function fixtures(): Promise<Record<string, string>> {
  const value = async (path: string, content?: string | Uint8Array) => {
    const { values, message } = await call<Record<string, string & { "/": string }>>(host, path, content);
    assert.equal(message, undefined, path);
    return values.at(-1) ?? {};
  };
  const tree = async (names: Readonly<Record<string, string>>) => {
    const { body, headers } = multipart(Object.entries(names).map(([filename, content]) => ({ filename, content })));
    const response = await fetch(`http://127.0.0.1:${host.http}/api/v0/add`, { method: "POST", body, headers });
    return (JSON.parse((await response.text()).trimEnd().split("\n").at(-1) as string) as { Hash: string }).Hash;
  };
  const hello = (await value("add", "hello\n")).Hash as string;
  const empty = (await value("object/new?arg=unixfs-dir")).Hash as string;
  const dir = await tree({ "d/a": "hello\n", "d/sub/b": "b".repeat(300_000) });
  const twice = await tree({ "d/a": "hello\n", "d/b": "hello\n" });
  const cbor = (await value("dag/put", `{"a":1,"l":{"/":"${hello}"}}`)).Cid?.["/"] as string;
  const object = (await value("object/put", '{"Data":"ab"}')).Hash as string;
  const big = (await value("add", "x".repeat(600_000))).Hash as string;
  const unshared = (await value("block/put?format=raw", "of no file")).Key as string;
  await value("config?arg=Experimental.ShardingEnabled&arg=true&bool=true");
  const sharded = await tree(Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`d/${at}`, "hello\n"])));
  await value("config?arg=Experimental.ShardingEnabled&arg=false&bool=true");
  await call(host, `files/cp?arg=/ipfs/${sharded}&arg=/sharded`);
  await call(host, "files/write?arg=/made/file&create=true&parents=true", "hello\n");
  await call(host, "key/gen?arg=swept");
  for (const name of ["c", "a", "d", "b"]) await referred(name);
  const tar = (await value("tar/add", entry("0", "in an archive"))).Hash as string;
  const replaced = (await value("add", "replaced")).Hash as string;
  const self = (await value("id")).ID as string;
  const cids = { hello, empty, dir, twice, cbor, object, big, unshared, tar, replaced };
  for (const cid of Object.values(cids)) await value(`pin/add?arg=${cid}`);
  await value(`pin/rm?arg=${unshared}`);
  return {
    ...cids,
    self,
    missing: "bafkreigtpkiih7wr7wb7ts6j5aunnotxiff3yqkx33rs4k4xhskprx5tua",
    other: "QmaCpDMGvV2BGHeYERUEnRQAwe3N8SzbUtfsmvsqQLuvuJ",
    data: join(host.folder, "data"),
    web: `http://127.0.0.1:${(web.address() as AddressInfo).port}/`,
  };
}

/** Adds a file of the host by reference. */
async function referred(name: string): Promise<void> {
  const abspath = join(host.folder, "data", `referred-${name}`);
  await writeFile(abspath, `referred to: ${name}`);
  const { message } = await call(host, "add?nocopy=true", `referred to: ${name}`, { Abspath: abspath });
  assert.equal(message, undefined);
}

for (const [path, command] of storageCommands) {
  const lines = sweep[path] ?? {};
  describe(path, () => {
    test("has a line for each parameter", () => assert.deepEqual(gaps(command, lines), []));
    for (const [name, line] of Object.entries(lines)) {
      test(name, () => runner.check(command, name, line));
    }
  });
}

test("every line belongs to an existing command", () => {
  const known = new Set(storageCommands.map(([path]) => path));
  assert.deepEqual(
    Object.keys(sweep).filter((path) => !known.has(path)),
    [],
  );
});
