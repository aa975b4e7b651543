/** Certificates by ACME: ordered, served and renewed by a running server. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { connect } from "node:tls";
import type { Module } from "#core/types.ts";
import { type FakeAcme, type FakeAcmeOptions, fakeAcme } from "#test/support/fake_acme.ts";
import { type Reconfigured, reconfigured } from "#test/unit/core/operations/reconfigured.ts";

const PATIENCE_MS = 60_000;
const secure = { https_ports: [0], https_interfaces: ["127.0.0.1"] };

/** An app at the path of proofs, which may belong to other ACME clients. */
const wellKnown = {
  name: "http_well_known",
  load: (module: Module) =>
    module.provides("http", {
      default_path: "/.well-known/acme-challenge",
      route: { "GET /*": (_event, path) => `app ${path}` },
    }),
};

async function until(what: string, holds: () => Promise<boolean> | boolean): Promise<void> {
  const end = Date.now() + PATIENCE_MS;
  while (!(await holds())) {
    assert.ok(Date.now() < end, `not within a minute: ${what}`);
    await pause(20);
  }
}

interface Setup extends AsyncDisposable {
  readonly server: Reconfigured;
  readonly authority: FakeAcme;
  /** Returns issuer and name of the certificate that clients get. */
  shown(name: string): Promise<string>;
}

async function setup(values: Record<string, unknown>, options: Partial<FakeAcmeOptions> = {}): Promise<Setup> {
  const portOf = (service: string) => server.host.listening().find((one) => one.service === service)?.port ?? 0;
  const authority = await fakeAcme({ http: () => portOf("http"), https: () => portOf("https"), ...options });
  const server: Reconfigured = await reconfigured(
    { ...secure, acme_directory: authority.directory, acme_agree: true, ...values },
    [wellKnown],
  );
  return {
    server,
    authority,
    async shown(name) {
      const socket = connect({ port: portOf("https"), host: "127.0.0.1", servername: name, rejectUnauthorized: false });
      await once(socket, "secureConnect");
      const { issuer = "", subject = "" } = socket.getPeerX509Certificate() ?? {};
      socket.destroy();
      return `${issuer} ${subject}`;
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await authority[Symbol.asyncDispose]();
    },
  };
}

const ofAuthority = (name: string) => `CN=Fake Authority CN=${name}`;

describe("a certificate by ACME", () => {
  for (const challenge of ["http-01", "tls-alpn-01"]) {
    test(`is ordered with ${challenge}, served at once, and stored so that only its owner can read it`, async () => {
      // The server has no virtual host with these names: authorities get responses on any host.
      const values = { acme_hosts: ["a.test", "b.test"], acme_challenge: challenge, hosts: { "c.test": {} } };
      await using made = await setup(values);
      await until("a.test", async () => (await made.shown("a.test")) === ofAuthority("a.test"));
      await until("b.test", async () => (await made.shown("b.test")) === ofAuthority("b.test"));
      assert.equal(await made.shown("other.test").then((text) => text.includes("Fake")), false);
      assert.ok(made.authority.seen.includes(`${challenge} valid`));
      const folder = join(made.server.folder, "data/certs/acme");
      const files = await readdir(folder);
      assert.equal(files.length, 7, files.join());
      for (const file of files) assert.equal((await stat(join(folder, file))).mode & 0o777, 0o600, file);
      assert.equal((await stat(folder)).mode & 0o777, 0o700);
      const { certificates } = made.server.host.status();
      const { source, order } = certificates.find(({ name }) => name === "a.test") ?? {};
      assert.deepEqual([source, order?.failures, order?.error], ["acme", 0, undefined]);
      const audit = await readFile(join(made.server.folder, "data/audit.jsonl"), "utf8");
      assert.match(audit, /"by":"acme".*serve other certificates for a\.test/);
    });
  }

  test("is not ordered before the terms are accepted, and the log has the URL of the terms", async () => {
    await using made = await setup({ acme_hosts: ["a.test"], acme_agree: false });
    await until("the warning", () => made.server.log().includes("acme_agree"));
    assert.match(made.server.log(), /set acme_agree: true if you agree to its terms at http:.*\/terms/);
    assert.deepEqual(made.authority.seen, []);
    await made.server.apply({
      ...secure,
      acme_directory: made.authority.directory,
      acme_agree: true,
      acme_hosts: ["a.test"],
    });
    await until("a.test", async () => (await made.shown("a.test")) === ofAuthority("a.test"));
  });

  test("is stored across starts, with its account, and not ordered again", async () => {
    await using made = await setup({ acme_hosts: ["a.test"] });
    await until("a.test", async () => (await made.shown("a.test")) === ofAuthority("a.test"));
    const before = [...made.authority.seen];
    const values = { ...secure, acme_directory: made.authority.directory, acme_agree: true, acme_hosts: ["a.test"] };
    await made.server.apply({ ...values, acme_email: "admin@a.test" });
    await until("a look", () => made.authority.seen.length > before.length);
    assert.deepEqual(made.authority.seen, [...before, "renewal window requested"]);
    assert.equal(await made.shown("a.test"), ofAuthority("a.test"));
  });

  test("is renewed when the authority specifies it, and replaces the previous one", async () => {
    await using made = await setup({ acme_hosts: ["a.test"] });
    await until("a.test", async () => (await made.shown("a.test")) === ofAuthority("a.test"));
    const [first] = made.server.host.status().certificates.filter(({ name }) => name === "a.test");
    made.authority.renewNow();
    const values = { ...secure, acme_directory: made.authority.directory, acme_agree: true, acme_hosts: ["a.test"] };
    await made.server.apply({ ...values, acme_email: "admin@a.test" });
    await until("another one", () => {
      const now = made.server.host.status().certificates.find(({ name }) => name === "a.test");
      return now?.fingerprint !== first?.fingerprint;
    });
    assert.ok(made.authority.seen.includes("order a.test replaces another"));
    assert.ok(made.authority.seen.includes("account known"));
  });

  test("is requested later if the authority has too many orders", async () => {
    const authority = { retry: 7200 };
    await using made = await setup({ acme_hosts: [] });
    made.authority.limit(100, authority.retry);
    const values = { ...secure, acme_directory: made.authority.directory, acme_agree: true };
    await made.server.apply({ ...values, acme_hosts: ["a.test"] });
    await until("the warning", () => made.server.log().includes("too many orders"));
    const minutes = Number(/next attempt is in (\d+) minutes/.exec(made.server.log())?.[1]);
    assert.ok(minutes >= 120 && minutes <= 122, `${minutes}`);
    assert.deepEqual(made.authority.seen, ["account made", "order refused"]);
    const { certificates, warnings } = made.server.host.status();
    const { order, expires } = certificates.find(({ name }) => name === "a.test") ?? {};
    assert.deepEqual(
      [expires, order?.failures, order?.authority],
      [undefined, 1, new URL(made.authority.directory).host],
    );
    assert.match(order?.error ?? "", /too many orders/);
    assert.ok(Date.parse(order?.next_try ?? "") > Date.now() + 7_000_000, order?.next_try);
    assert.match(warnings.join("\n"), /issued no certificate for a\.test: .*too many orders.*next attempt is at 20/);
  });

  test("is not requested again after a restart before the time that the authority named, unless settings change", async () => {
    await using made = await setup({ acme_hosts: [] });
    made.authority.limit(1, 7200);
    const values = { ...secure, acme_directory: made.authority.directory, acme_agree: true, acme_hosts: ["a.test"] };
    await made.server.apply(values);
    await until("the warning", () => made.server.log().includes("too many orders"));
    const stateOf = ({ host }: Reconfigured) => host.status().certificates.find(({ name }) => name === "a.test")?.order;
    const before = stateOf(made.server);
    await made.server.host.stop();
    await using next = await reconfigured({ ...values, data_path: join(made.server.folder, "data") });
    assert.deepEqual(stateOf(next), before);
    // A name whose order failed before does not delay another one.
    await next.apply({ ...values, data_path: join(made.server.folder, "data"), acme_hosts: ["a.test", "b.test"] });
    await until("a try for the other name", () => made.authority.seen.includes("order b.test"));
    assert.deepEqual(stateOf(next), before);
    assert.ok(!made.authority.seen.includes("order a.test"));
    await next.apply({ ...values, data_path: join(made.server.folder, "data"), acme_email: "admin@a.test" });
    await until("a try with other settings", () => made.authority.seen.includes("order a.test"));
  });

  test("is bound to an existing account, if the authority requires that", async () => {
    const eab = { id: "operator-1" };
    await using made = await setup({ acme_hosts: ["a.test"] }, { eab });
    await until("the warning", () => made.server.log().includes("acme_eab_id"));
    const values = { ...secure, acme_directory: made.authority.directory, acme_agree: true, acme_hosts: ["a.test"] };
    await made.server.apply({ ...values, acme_eab_id: eab.id, acme_eab_key: "c2VjcmV0IG9mIHRoZSBvcGVyYXRvcg" });
    await until("a.test", async () => (await made.shown("a.test")) === ofAuthority("a.test"));
    assert.doesNotMatch(made.server.log(), /c2VjcmV0/);
  });

  test("is not issued for a wildcard, which is refused in advance", async () => {
    await using made = await setup({});
    await assert.rejects(made.server.apply({ acme_hosts: ["*.a.test"] }), /acme_hosts.*without wildcards/);
  });

  test("leaves unknown proofs to apps", async () => {
    await using made = await setup({ acme_hosts: ["a.test"] });
    assert.equal(await made.server.get("/.well-known/acme-challenge/of-another"), "app of-another/");
  });
});
