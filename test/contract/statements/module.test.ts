/**
 * Decisions on the module object: dependencies, life cycle, hooks, imports of the library, and
 * listeners.
 */
import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { connect } from "node:tls";
import { assertNothingLeft } from "#core/testing/index.ts";
import type { Module } from "#core/types.ts";
import { startHost, withHost } from "#test/support/host.ts";
import { overEach } from "#test/support/transports.ts";

const app = (text: () => string) => (module: Module) => {
  module.depends("http");
  module.provides("http", { route: { GET: text } });
};

describe("with a dependency", () => {
  const host = withHost({
    modules: {
      // Listed before the module that it needs, so that its first attempt is undone.
      mod_http_user(module) {
        const tool = module.depends<{ shout(text: string): string }>("tool");
        module.depends("http");
        module.provides("http", { route: { GET: () => tool.shout("hello") } });
      },
      mod_tool: () => ({ shout: (text: string) => text.toUpperCase() }),
    },
  });

  overEach(host, "D59 module.depends gives what the dependency's function returned, at once", async (client) => {
    assert.equal(await client.text("/user"), "HELLO");
  });
});

describe("with a dependency that is loaded late", () => {
  let attempts = 0;
  const host = withHost({
    plugins: { mod_late_tool: `export default () => "tool";` },
    modules: {
      mod_http_catching(module) {
        attempts += 1;
        module.provides("http", { route: { [`GET /${attempts}`]: () => "served" } });
        try {
          module.depends("late_tool");
        } catch {
          // Catching the error has no effect.
        }
        module.depends("http");
      },
    },
  });

  overEach(
    host,
    "D60 a load attempt that finds its dependency missing is undone and runs again, even if the module catches it",
    async (client) => {
      assert.ok(attempts >= 2, `${attempts} attempts`);
      assert.equal(await client.text(`/catching/${attempts}`), "served");
      assert.equal(await client.status("/catching/1"), 404);
    },
  );
});

describe("with a declared dependency", () => {
  const key = Symbol.for("modhost.test.attempts");
  const counter = globalThis as unknown as Record<symbol, number>;
  counter[key] = 0;
  after(() => delete counter[key]);
  const host = withHost({
    plugins: {
      mod_first_needed: `export default () => "needed";`,
      mod_http_declared: `export const depends = ["http", "first_needed"];
        export default (module) => {
          globalThis[Symbol.for("modhost.test.attempts")] += 1;
          const needed = module.depends("first_needed");
          module.provides("http", { route: { GET: () => needed } });
        };`,
    },
    config: { modules_enabled: ["http_declared"] },
  });

  overEach(
    host,
    "D61 export const depends loads the dependencies first and spares the second attempt",
    async (client) => {
      assert.equal(await client.text("/declared"), "needed");
      assert.equal(counter[key], 1);
    },
  );
});

describe("with a module that records its life cycle", () => {
  const steps: string[] = [];
  const host = withHost({
    modules: {
      async mod_http_life(module) {
        steps.push("function");
        await Promise.resolve();
        module.load = () => void steps.push("load");
        module.ready = () => void steps.push("ready");
        module.unload = () => void steps.push("unload");
        app(() => "alive")(module);
      },
    },
  });

  overEach(
    host,
    "D62 the life-cycle functions run in order, and the module's function may be async",
    async (client, running) => {
      assert.equal(await client.text("/life"), "alive");
      assert.deepEqual(steps.slice(-3), ["function", "load", "ready"]);
      await running.host.unload("http_life");
      assert.equal(steps.at(-1), "unload");
      await assertNothingLeft(running, "http_life");
      assert.equal(await client.status("/life"), 404);
      // Loads the module again for the next transport.
      await running.host.load("http_life");
    },
  );
});

test("D63 hooks run by priority until one returns a result", async () => {
  const heard: string[] = [];
  await using host = await startHost({
    modules: {
      mod_listener(module) {
        module.hook("question", () => void heard.push("default"));
        module.hook("question", () => void heard.push("high"), 10);
        const hookOf = () => {
          heard.push("last");
          return "result";
        };
        module.hook("question", hookOf, -1);
        module.hook("question", () => void heard.push("never"), -2);
      },
    },
  });
  assert.equal(host.host.fire("question", {}), "result");
  assert.deepEqual(heard, ["high", "default", "last"]);
});

describe("with a loose file", () => {
  const host = withHost({
    plugins: {
      mod_http_loose: `import { formdecode } from "modhost/net/http";
        export default (module) => {
          module.depends("http");
          module.provides("http", { route: { "POST /": ({ request }) => formdecode(request.body).name } });
        };`,
    },
    config: { modules_enabled: ["http_loose"] },
  });

  overEach(host, "D64 a loose file imports modhost/net/http from the running host", async (client) => {
    assert.equal(await client.text({ method: "POST", path: "/loose/", body: "name=a+b" }), "a b");
  });
});

describe("with a broken module", () => {
  const host = withHost({
    modules: {
      mod_http_broken(module) {
        module.depends("http");
        module.provides("http", { route: { GET: () => "half loaded" } });
        throw new Error("broken on purpose");
      },
      mod_http_sound: app(() => "sound"),
    },
  });

  overEach(
    host,
    "D65 a broken module is a status: the others go on and nothing of it stays live",
    async (client, running) => {
      assert.equal(await client.text("/sound"), "sound");
      assert.equal(await client.status("/broken"), 404);
      const state = running.host.modules().find(({ name }) => name === "http_broken");
      assert.equal(state?.status, "failed");
      assert.match(state.note ?? "", /broken on purpose/);
      assert.match(running.log(), /broken on purpose/);
    },
  );
});

test("D66 module.http_url gives the URL of an app, after http_external_url and http_paths", async () => {
  const urls: Record<string, string> = {};
  const telling = (key: string) => ({
    [`mod_http_${key}`](module: Module) {
      module.depends("http");
      module.provides("http", { route: { GET: () => "x" } });
      module.ready = () => {
        urls[key] = module.http_url();
      };
    },
  });
  await using direct = await startHost({ modules: telling("direct") });
  assert.match(urls.direct ?? "", new RegExp(`^https://[^/]+:${direct.https}/direct/?$`));
  await using external = await startHost({
    config: { http_external_url: "https://example.org/base/", http_paths: { external: "/moved" } },
    modules: telling("external"),
  });
  assert.match(urls.external ?? "", /^https:\/\/example\.org\/base\/moved\/?$/);
  assert.equal(external.host.state, "running");
});

test("D67 plain HTTP listens on loopback and HTTPS on all interfaces unless configured", async () => {
  await using host = await startHost({ config: { http_interfaces: undefined, https_interfaces: undefined } });
  const addresses = (service: string) =>
    host.host
      .listening()
      .filter((port) => port.service === service)
      .map(({ address }) => address);
  for (const address of addresses("http")) assert.match(address, /^(127\.0\.0\.1|::1)$/);
  assert.ok(addresses("http").includes("127.0.0.1"));
  for (const address of addresses("https")) assert.match(address, /^(\*|::|0\.0\.0\.0)$/);
  assert.equal(addresses("https").length > 0, true);
});

test("D68 HTTPS has a self-signed certificate, which is made at the first start and stored", async () => {
  const fingerprint = async (port: number) => {
    const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false, servername: "localhost" });
    try {
      await new Promise<void>((resolve, reject) => socket.once("secureConnect", resolve).once("error", reject));
      const certificate = socket.getPeerCertificate();
      assert.match(certificate.subjectaltname ?? "", /DNS:localhost/);
      return certificate.fingerprint256;
    } finally {
      socket.destroy();
    }
  };
  await using first = await startHost({});
  const one = await fingerprint(first.https);
  assert.equal((await stat(join(first.folder, "data"))).isDirectory(), true);
  await first.host.stop();
  await using second = await startHost({ config: { data_path: join(first.folder, "data") } });
  assert.equal(await fingerprint(second.https), one);
});

test("D69 HTTPS offers h2 and http/1.1", async () => {
  await using host = await startHost({});
  for (const protocol of ["h2", "http/1.1"]) {
    const socket = connect({
      port: host.https,
      host: "127.0.0.1",
      rejectUnauthorized: false,
      ALPNProtocols: [protocol],
    });
    await new Promise<void>((resolve, reject) => socket.once("secureConnect", resolve).once("error", reject));
    assert.equal(socket.alpnProtocol, protocol);
    socket.destroy();
  }
});
