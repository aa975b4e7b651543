import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { mounted, mountType } from "#node/mount/mount_table.ts";
import { digestOf, keystream } from "#test/support/content.ts";
import { eventually } from "#test/support/eventually.ts";
import { skip } from "#test/unit/modules/mod_node/mount/support.ts";
import { type RpcHost, startOnline, startRpc } from "./support.ts";

const mebibyte = 2 ** 20;
/** MiB of the large file. MODHOST_MOUNT_MIB=500 runs the long form. */
const large = Number(process.env.MODHOST_MOUNT_MIB ?? 8);

describe("mount over the API", { skip }, () => {
  let host: RpcHost;
  let points: { ipfs: string; ipns: string };
  before(async () => {
    host = await startRpc({ node_offline: false });
    points = { ipfs: join(host.folder, "content path"), ipns: join(host.folder, "names") };
    await Promise.all([mkdir(points.ipfs), mkdir(points.ipns)]);
  });
  after(() => host.stop());

  const shell = async (script: string) =>
    (await promisify(execFile)("timeout", ["40", "bash", "-ec", script], { cwd: host.folder })).stdout;
  const ours = async () =>
    (await mounted(mountType)).map(({ folder }) => folder).filter((path) => path.startsWith(host.folder));
  const query = (options: Readonly<Record<string, string>>) => `mount?${new URLSearchParams(options)}`;

  test("it returns the mounted folders, accepts every option name, and can be repeated over live mounts", async () => {
    const { ipfs, ipns } = points;
    const response = { IPFS: ipfs, IPNS: ipns, FuseAllowOther: false, STORE: ipfs, NAME: ipns };
    assert.deepEqual(await host.value(query({ "ipfs-path": ipfs, "ipns-path": ipns })), response);
    assert.deepEqual(await host.value(query({ f: ipfs, n: ipns })), response);
    const { text } = await host.call(query({ "store-path": ipfs, "name-path": ipns, encoding: "text" }));
    assert.equal(text, `IPFS mounted at: ${ipfs}\nIPNS mounted at: ${ipns}\n`);
    assert.deepEqual((await ours()).sort(), [ipfs, ipns].sort());
  });

  test("the namespace of files cannot be mounted, and the error says so", async () => {
    assert.deepEqual(await host.failure(query({ "mfs-path": host.folder })), [
      500,
      "mfs-path: the namespace of `files` cannot be mounted",
    ]);
  });

  test("added content is readable there, equal to cat byte by byte", async () => {
    const pieces = [...keystream(large * mebibyte, 9)];
    const form = new FormData();
    form.append("file", new Blob(pieces as Uint8Array<ArrayBuffer>[]));
    const api = `http://127.0.0.1:${host.http}/api/v0`;
    const { Hash } = (await (await fetch(`${api}/add?progress=false`, { method: "POST", body: form })).json()) as {
      Hash: string;
    };
    const cat = await fetch(`${api}/cat?arg=${Hash}`, { method: "POST" });
    const given = createHash("sha256");
    for await (const bytes of cat.body as AsyncIterable<Uint8Array>) given.update(bytes);
    const expected = digestOf(pieces);
    assert.equal(given.digest("hex"), expected);
    assert.equal((await shell(`sha256sum < "${points.ipfs}/${Hash}"`)).slice(0, 64), expected);
  });

  test("content written to the node's own name is published, and readable over the API by name", async () => {
    await shell(`cd "${points.ipns}/local/"; mkdir folder; echo hello > folder/file; sync folder/file`);
    const { ID } = await host.value<{ ID: string }>("id");
    for (let path = ""; ; ) {
      const { lines } = await host.call(`name/resolve?arg=${ID}&offline=true&nocache=true`);
      ({ Path: path } = lines[0] as { Path: string });
      const { text, status } = await host.call(`cat?arg=${path}/folder/file`);
      if (status !== 200) continue;
      assert.equal(text, "hello\n");
      await host.call(`files/cp?arg=${path}/folder&arg=/taken`);
      assert.equal((await host.call("files/read?arg=/taken/file")).text, "hello\n");
      break;
    }
  });

  test("while names are mounted, only writing to them publishes", async () => {
    const [empty] = ["QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn"];
    assert.deepEqual(await host.failure(`name/publish?arg=/ipfs/${empty}&resolve=false&allow-offline=true`), [
      500,
      "cannot manually publish while IPNS is mounted",
    ]);
    await shell(`umount -i "${points.ipfs}" "${points.ipns}"`);
    for (let status = 0; status !== 200; ) {
      const publish = `name/publish?arg=/ipfs/${empty}&resolve=false&allow-offline=true&offline=true`;
      ({ status } = await host.call(publish));
    }
  });

  test("it is unmounted when the host stops", async () => {
    await host.value(query({ f: points.ipfs, n: points.ipns }));
    assert.equal((await ours()).length, 2);
    await host.stop();
    assert.deepEqual(await ours(), []);
  });
});

test("with a mount at 0.43, written files become blocks as configured", { skip }, async (t) => {
  const host = await startOnline({ "Import.CidVersion": 1, "Mounts.StoreMode": true }, { api_level: "0.43" });
  t.after(() => host.stop());
  const [ipfs, ipns] = ["contents", "names"].map((name) => join(host.folder, name)) as [string, string];
  await Promise.all([mkdir(ipfs), mkdir(ipns)]);
  await host.value(`mount?${new URLSearchParams({ f: ipfs, n: ipns })}`);
  const script = "printf aaa > names/local/small; printf aaa > names/local/set; chmod 640 names/local/set";
  await promisify(execFile)("timeout", ["40", "bash", "-ec", script], { cwd: host.folder });
  // Like Kubo: a mode turns a raw leaf into a node, which has a CID of version 0.
  const expected = [
    ["set", "QmPrQ7gqQR9Lqt8PLmbzJoTKYv6ED7fkj5xEJi2CekkDMW"],
    ["small", "bafkreieygsdw3t5qlsywpjocjfj6xjmmjlejwgw7k7zi6l45bgxra7xi6a"],
  ];
  const { ID } = await host.value<{ ID: string }>("id");
  await eventually("the name is published", async () => {
    const { status, lines } = await host.call(`ls?arg=/ipns/${ID}`);
    if (status !== 200) return false;
    const [{ Objects }] = lines as [{ Objects: { Links: { Name: string; Hash: string }[] }[] }];
    const links = Objects[0]?.Links.map(({ Name, Hash }) => [Name, Hash]);
    return JSON.stringify(links) === JSON.stringify(expected);
  });
});
