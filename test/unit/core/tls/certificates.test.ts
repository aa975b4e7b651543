import assert from "node:assert/strict";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { copyFile, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { connect, createServer } from "node:tls";
import { Certificates, type CertificatesOptions } from "#core/tls/index.ts";
import { lifetime, makeSelfSigned } from "#core/tls/self_signed.ts";

const root = mkdtempSync(join(tmpdir(), "modhost-tls-"));
after(() => rm(root, { recursive: true }));

interface Entry {
  level: string;
  format: string;
}

async function store(more: Partial<CertificatesOptions> = {}) {
  const log: Entry[] = [];
  const write = (level: string) => (format: string) => void log.push({ level, format });
  const directory = more.directory ?? (await mkdtemp(join(root, "store-")));
  const options = { directory, certificates: undefined, hosts: [], log: { info: write("info"), warn: write("warn") } };
  return { certificates: new Certificates({ ...options, ...more }), directory, log };
}

async function pair(names: string[], now?: Date): Promise<{ certificate: string; key: string }> {
  const folder = await mkdtemp(join(root, "pair-"));
  const files = { certificate: join(folder, "c.pem"), key: join(folder, "k.pem") };
  const made = await makeSelfSigned(names, now);
  await writeFile(files.certificate, made.certificate);
  await writeFile(files.key, made.key);
  return files;
}

/** Returns the certificates that clients get for each of these names (undefined: no name). */
async function served(certificates: Certificates, ...names: (string | undefined)[]): Promise<string[]> {
  const server = createServer(certificates.options()).listen(0, "127.0.0.1");
  await once(server, "listening");
  const subjects: string[] = [];
  for (const servername of names) {
    const { port } = server.address() as AddressInfo;
    const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ...(servername && { servername }) });
    await once(socket, "secureConnect");
    subjects.push(socket.getPeerX509Certificate()?.subject ?? "");
    socket.destroy();
  }
  server.close();
  return subjects;
}

describe("the self-signed certificate", () => {
  test("covers this machine and the configured hosts, for ten years", async () => {
    const { certificates, directory, log } = await store({ hosts: ["shop.example", "192.0.2.7", "[2001:db8::1]"] });
    await certificates.prepare();
    const made = new X509Certificate(await readFile(join(directory, "self-signed.crt")));
    for (const name of ["shop.example", "localhost", hostname()]) assert.equal(made.checkHost(name), name);
    for (const ip of ["127.0.0.1", "::1", "192.0.2.7", "2001:db8::1"]) assert.equal(made.checkIP(ip), ip);
    assert.equal(made.checkHost("other.example"), undefined);
    assert.ok(Math.abs(made.validToDate.getTime() - Date.now() - lifetime) < 60_000);
    assert.ok(made.validFromDate.getTime() < Date.now());
    assert.ok(made.verify(made.publicKey));
    assert.equal(made.publicKey.asymmetricKeyDetails?.namedCurve, "prime256v1");
    assert.equal(log.length, 1);
  });

  test("is accepted by a client that trusts it", async () => {
    const { certificates, directory } = await store({ hosts: ["shop.example"] });
    await certificates.prepare();
    const server = createServer(certificates.options()).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const ca = await readFile(join(directory, "self-signed.crt"));
    for (const servername of ["shop.example", "localhost"]) {
      const socket = connect({ port, host: "127.0.0.1", ca, servername });
      await once(socket, "secureConnect");
      assert.ok(socket.authorized);
      socket.destroy();
    }
    server.close();
  });

  test("is stored across starts, only its owner can read the key, and no other file is left", async () => {
    const { certificates, directory } = await store();
    await certificates.prepare();
    const before = await readFile(join(directory, "self-signed.crt"), "utf8");
    const again = await store({ directory });
    await again.certificates.prepare();
    assert.equal(await readFile(join(directory, "self-signed.crt"), "utf8"), before);
    assert.deepEqual(again.log, []);
    assert.equal((await stat(join(directory, "self-signed.key"))).mode & 0o777, 0o600);
    assert.deepEqual((await readdir(directory)).sort(), ["self-signed.crt", "self-signed.key"]);
  });

  const old = new Date(Date.now() - lifetime);
  for (const [reason, spoil, hosts] of [
    ["expired", async (directory: string) => replaceBy(directory, await pair(["localhost"], old)), []],
    ["damaged", (directory: string) => writeFile(join(directory, "self-signed.crt"), "-----BEGIN"), []],
    ["without a new host", async () => {}, ["new.example"]],
  ] as const) {
    test(`is created again if the stored one is ${reason}`, async () => {
      const { certificates, directory } = await store();
      await certificates.prepare();
      await spoil(directory);
      const before = await readFile(join(directory, "self-signed.crt"), "utf8");
      await (await store({ directory, hosts: [...hosts] })).certificates.prepare();
      const made = new X509Certificate(await readFile(join(directory, "self-signed.crt")));
      assert.notEqual(made.toString(), before);
      assert.ok(made.validToDate.getTime() > Date.now());
      for (const host of hosts) assert.equal(made.checkHost(host), host);
    });
  }

  async function replaceBy(directory: string, files: { certificate: string; key: string }): Promise<void> {
    await copyFile(files.certificate, join(directory, "self-signed.crt"));
    await copyFile(files.key, join(directory, "self-signed.key"));
  }
});

describe("a configured certificate", () => {
  test("is chosen by name: exact, wildcard, self-signed", async () => {
    const { certificates } = await store({
      certificates: {
        "a.example.org": await pair(["a.example.org"]),
        "*.example.org": await pair(["*.example.org"]),
        "dot.example.": await pair(["dot.example"]),
      },
    });
    await certificates.prepare();
    const names = ["a.example.org", "A.Example.org", "b.example.org", "x.b.example.org", "other.example", undefined];
    assert.deepEqual(await served(certificates, "dot.example", ...names), [
      "CN=dot.example",
      "CN=a.example.org",
      "CN=a.example.org",
      "CN=*.example.org",
      "CN=localhost",
      "CN=localhost",
      "CN=localhost",
    ]);
  });

  test('for "*" replaces the self-signed one, which is not created', async () => {
    const { certificates, directory } = await store({ certificates: { "*": await pair(["any.example"]) } });
    await certificates.prepare();
    assert.deepEqual(await served(certificates, "other.example", undefined), ["CN=any.example", "CN=any.example"]);
    assert.deepEqual(await readdir(directory), []);
  });

  test("is not offered to a client without TLS 1.2", async () => {
    const { certificates } = await store();
    await certificates.prepare();
    const server = createServer({ ...certificates.options(), ciphers: "DEFAULT@SECLEVEL=0" }).listen(0, "127.0.0.1");
    server.on("tlsClientError", () => {});
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const old = { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" } as const;
    const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ...old });
    await assert.rejects(once(socket, "secureConnect"), /alert protocol version/);
    server.close();
  });

  test("that is broken, missing or without its key causes an error with host and file", async () => {
    const one = await pair(["a.example"]);
    const two = await pair(["a.example"]);
    const broken = join(root, "broken.pem");
    await writeFile(broken, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    const key = createPrivateKey(await readFile(one.key));
    const pkcs8 = join(root, "pkcs8.pem");
    const sec1 = join(root, "sec1.pem");
    const secret = { format: "pem", cipher: "aes-128-cbc", passphrase: "a" } as const;
    await writeFile(pkcs8, key.export({ ...secret, type: "pkcs8" }));
    await writeFile(sec1, key.export({ ...secret, type: "sec1" }));
    for (const [files, message] of [
      [{ ...one, certificate: broken }, /for a\.example cannot be used: .*broken\.pem is not a usable PEM file/],
      [{ ...one, key: one.certificate }, /for a\.example .*c\.pem is not a usable PEM file/],
      [{ ...one, key: join(root, "none.pem") }, /for a\.example .*none\.pem cannot be read: ENOENT/],
      [{ ...one, key: pkcs8 }, /the key in .*pkcs8\.pem has a passphrase, .* openssl pkey/],
      [{ ...one, key: sec1 }, /the key in .*sec1\.pem has a passphrase, .* openssl pkey/],
      [{ ...one, key: two.key }, /the key in .*k\.pem does not belong to the certificate in .*c\.pem/],
    ] as const) {
      const { certificates } = await store({ certificates: { "a.example": files } });
      await assert.rejects(certificates.prepare(), { code: "TLS_INVALID", message });
    }
  });

  test("that has expired or is for another name is used, with a warning", async () => {
    const expired = await pair(["a.example"], new Date(Date.now() - 2 * lifetime));
    const other = await pair(["b.example"]);
    for (const [files, format] of [
      [expired, /expired/],
      [other, /does not cover/],
    ] as const) {
      const { certificates, log } = await store({ certificates: { "a.example": files } });
      await certificates.prepare();
      assert.match(log.find(({ level }) => level === "warn")?.format ?? "", format);
    }
  });
});
