/** Certificates whose files change while the server runs. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, readFile, rename, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { connect, type TLSSocket } from "node:tls";
import { makeSelfSigned } from "#core/tls/self_signed.ts";
import type { Module } from "#core/types.ts";
import { type Reconfigured, reconfigured } from "#test/unit/core/operations/reconfigured.ts";

/** Longer than any machine takes. */
const PATIENCE_MS = 60_000;

const hello = {
  name: "http_hello",
  load: (module: Module) => module.provides("http", { route: { "GET /": () => "hello" } }),
};

const secure = { https_ports: [0], https_interfaces: ["127.0.0.1"] };
const certificates = {
  "*": { certificate: "./live/any.crt", key: "./live/any.key" },
  "a.test": { certificate: "./live/a.crt", key: "./live/a.key" },
};

async function pems(names: Readonly<Record<string, string>>): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  for (const [file, name] of Object.entries(names)) {
    const { certificate, key } = await makeSelfSigned([name, "a.test"]);
    files[`${file}.crt`] = certificate;
    files[`${file}.key`] = key;
  }
  return files;
}

async function writeAll(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
}

/** Returns the certificate that a client gets for a name, or without one. */
async function shown(server: Reconfigured, servername?: string): Promise<string> {
  const socket = await connected(server, servername);
  const subject = socket.getPeerX509Certificate()?.subject ?? "";
  socket.destroy();
  return subject;
}

async function connected(server: Reconfigured, servername?: string): Promise<TLSSocket> {
  const { port } = server.host.listening().find(({ service }) => service === "https") ?? { port: 0 };
  const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ...(servername && { servername }) });
  await once(socket, "secureConnect");
  return socket;
}

async function until(what: string, holds: () => Promise<boolean> | boolean): Promise<void> {
  const end = Date.now() + PATIENCE_MS;
  while (!(await holds())) {
    assert.ok(Date.now() < end, `not within a minute: ${what}`);
    await pause(20);
  }
}

async function started(): Promise<Reconfigured> {
  const server = await reconfigured({}, [hello]);
  await writeAll(join(server.folder, "live"), await pems({ any: "any1", a: "a1" }));
  await server.apply({ ...secure, certificates });
  return server;
}

describe("a certificate that is renewed while the server runs", () => {
  test("is used for new clients, also without a name, and open connections stay open", async () => {
    await using server = await started();
    assert.equal(await shown(server), "CN=any1");
    assert.equal(await shown(server, "a.test"), "CN=a1");
    const open = await connected(server);
    await writeAll(join(server.folder, "live"), await pems({ any: "any2", a: "a2" }));
    await until("any2", async () => (await shown(server)) === "CN=any2");
    await until("a2", async () => (await shown(server, "a.test")) === "CN=a2");
    open.write("GET /hello/ HTTP/1.1\r\nHost: a\r\n\r\n");
    assert.match(String((await once(open, "data"))[0]), /^HTTP\/1\.1 200/);
    assert.equal(open.getPeerX509Certificate()?.subject, "CN=any1");
    open.destroy();
    const audit = await readFile(join(server.folder, "data/audit.jsonl"), "utf8");
    assert.match(audit, /"by":"file watch".*serve other certificates for/);
    assert.equal(server.host.modules().filter(({ name }) => name === "http").length, 1);
  });

  test("is applied by a reload, which announces it beforehand and changes nothing else", async () => {
    await using server = await started();
    await writeAll(join(server.folder, "live"), await pems({ any: "any2" }));
    // The file watch may have been faster.
    const plan = await server.host.apply();
    assert.equal(await shown(server), "CN=any2");
    assert.deepEqual(plan.modules, []);
    assert.ok(plan.certificates.length === 0 || plan.certificates.join() === "*");
  });

  test("waits for its key, while the previous one is served, and delays no other certificate", async () => {
    await using server = await started();
    const live = join(server.folder, "live");
    const next = await pems({ any: "any2", a: "a2" });
    await writeFile(join(live, "a.crt"), next["a.crt"] as string);
    await writeAll(live, { "any.crt": next["any.crt"] as string, "any.key": next["any.key"] as string });
    await until("any2", async () => (await shown(server)) === "CN=any2");
    assert.equal(await shown(server, "a.test"), "CN=a1");
    await writeFile(join(live, "a.key"), next["a.key"] as string);
    await until("a2", async () => (await shown(server, "a.test")) === "CN=a2");
    assert.doesNotMatch(server.log(), /previous certificate stays in use/);
  });

  test("may consist of links to another folder, as Kubernetes swaps them", async () => {
    await using server = await reconfigured({}, [hello]);
    const { folder } = server;
    await writeAll(join(folder, "live/..1"), await pems({ any: "any1", a: "a1" }));
    await symlink("..1", join(folder, "live/..data"));
    for (const name of ["any.crt", "any.key", "a.crt", "a.key"]) {
      await symlink(`..data/${name}`, join(folder, "live", name));
    }
    await server.apply({ ...secure, certificates });
    assert.equal(await shown(server), "CN=any1");
    await writeAll(join(folder, "live/..2"), await pems({ any: "any2", a: "a2" }));
    await symlink("..2", join(folder, "live/..next"));
    await rename(join(folder, "live/..next"), join(folder, "live/..data"));
    await until("any2", async () => (await shown(server)) === "CN=any2");
    await until("a2", async () => (await shown(server, "a.test")) === "CN=a2");
  });

  test("is announced to modules by an event, and its expiry is part of the status", async () => {
    const heard: string[] = [];
    const listener = {
      name: "listener",
      load: (module: Module) => {
        module.hook("certificates-changed", ({ names }) => {
          heard.push(...names);
          assert.equal(module.server.certificates().find(({ name }) => name === "*")?.source, "file");
        });
      },
    };
    const modules_enabled = ["http", "http_openmetrics"];
    await using server = await reconfigured({ modules_enabled }, [hello, listener]);
    await writeAll(join(server.folder, "live"), await pems({ any: "any1", a: "a1" }));
    await server.apply({ ...secure, certificates, modules_enabled });
    assert.deepEqual(heard.splice(0).sort(), ["*", "a.test"]);
    await writeAll(join(server.folder, "live"), await pems({ any: "any2" }));
    await until("the event", () => heard.length > 0);
    assert.deepEqual(heard, ["*"]);
    const { certificates: states } = server.host.status();
    assert.deepEqual(states.map(({ name }) => name).sort(), ["*", "a.test"]);
    const metrics = await (await fetch(`http://127.0.0.1:${server.port()}/metrics`)).text();
    for (const { name, expires } of states) {
      const value = Number(metrics.split(`modhost_certificate_expiry_seconds{name="${name}"} `)[1]?.split("\n")[0]);
      assert.ok(value > Date.now() / 1000);
      assert.equal(value, Date.parse(expires ?? "") / 1000);
    }
  });
});
