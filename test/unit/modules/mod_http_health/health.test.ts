import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import type { HealthItem, Module, ModuleState } from "#core/types.ts";
import health from "#modules/mod_http_health/index.ts";
import { startHost } from "#test/support/host.ts";
import { RawConnection } from "#test/support/raw.ts";
import { Harness } from "#test/unit/modules/harness.ts";

describe("health", () => {
  let server: Harness;
  let module: Module;
  let states: Partial<ModuleState>[];
  let items: Record<"added" | "removed", (owned: { readonly item: HealthItem }) => void>;

  beforeEach(async () => {
    states = [{ name: "http", status: "loaded" }];
    await load({});
  });
  afterEach(() => server.stop());

  async function load(options: Record<string, unknown>): Promise<void> {
    server = await new Harness().start();
    const handle_items: Module["handle_items"] = (kind, added, removed) => {
      assert.equal(kind, "health-provider");
      items = { added: added as never, removed: removed as never };
    };
    const modules = () => states as ModuleState[];
    module = Object.assign(server.module("http_health", options), { modules, handle_items });
    health(module);
  }

  const ready = async () => {
    const { status, headers, text } = await server.fetch("/health/ready");
    assert.equal(headers["content-type"], "application/json; charset=utf-8");
    assert.equal(headers["cache-control"], "no-store");
    return [status, JSON.parse(text)];
  };

  test("live responds as long as the server does", async () => {
    const { status, headers, text } = await server.fetch("/health/live");
    assert.deepEqual([status, text, headers["content-type"]], [200, "ok\n", "text/plain; charset=utf-8"]);
  });

  test("ready responds with 200 from the opening of the ports until the stop", async () => {
    assert.deepEqual(await ready(), [503, { ready: false, state: "starting", failed: [], quarantined: [] }]);
    module.ready?.();
    assert.deepEqual(await ready(), [200, { ready: true, state: "ready", failed: [], quarantined: [] }]);
    server.bus.fire("server-leaving", {});
    assert.deepEqual(await ready(), [503, { ready: false, state: "stopping", failed: [], quarantined: [] }]);
    module.ready?.();
    assert.equal((await ready())[0], 503);
  });

  test("a configured module that failed makes the server unready, and each is named once", async () => {
    const broken = { name: "b", host: "x", status: "failed" } as const;
    states.push(broken, { ...broken, host: "y" }, { ...broken, name: "a" });
    module.ready?.();
    assert.deepEqual(await ready(), [503, { ready: false, state: "incomplete", failed: ["a", "b"], quarantined: [] }]);
    states = states.map((state) => ({ ...state, status: "loaded" }));
    assert.deepEqual(await ready(), [200, { ready: true, state: "ready", failed: [], quarantined: [] }]);
    states.push(broken);
    assert.equal((await ready())[0], 503, "it was configured, and has failed since");
  });

  test("a problem that a module reports makes the server unready as long as it exists", async () => {
    let problem: string | undefined;
    const owned = { item: { problem: () => problem } };
    items.added(owned);
    module.ready?.();
    assert.deepEqual(await ready(), [200, { ready: true, state: "ready", failed: [], quarantined: [] }]);
    problem = "the database is away";
    const expected = { ready: false, state: "impaired", failed: [], quarantined: [], reasons: [problem] };
    assert.deepEqual(await ready(), [503, expected]);
    problem = undefined;
    assert.equal((await ready())[0], 200);
    problem = "it is away again";
    items.removed(owned);
    assert.equal((await ready())[0], 200, "the module was unloaded");
  });

  test("a quarantined module is named, and leaves the server ready", async () => {
    states.push({ name: "b", host: "x", status: "loaded" });
    module.ready?.();
    states = [
      ...states.slice(0, -1),
      ...["y", "x"].map((host) => ({ name: "b", host, status: "quarantined" as const })),
    ];
    assert.deepEqual(await ready(), [200, { ready: true, state: "ready", failed: [], quarantined: ["b"] }]);
  });

  test("a module that is loaded for a trial, or is optional, does not make the server unready", async () => {
    await server.stop();
    await load({ http_health_optional: ["b"] });
    states.push({ name: "b", status: "failed" });
    module.ready?.();
    states.push({ name: "tried", status: "failed" });
    assert.deepEqual(await ready(), [200, { ready: true, state: "ready", failed: ["b", "tried"], quarantined: [] }]);
  });
});

describe("the health of a host that stops", () => {
  const enabled = { modules_enabled: ["http_health"] };
  const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
  const responsePattern = /^HTTP\/1\.1 (\d+) .*\r\n\r\n(.*\n)/s;

  /** Opens a connection that has received the response "ready". */
  async function readyConnection(port: number): Promise<RawConnection> {
    const connection = await RawConnection.open(port);
    connection.write(get("/health/ready"));
    assert.equal((await connection.until(responsePattern))[1], "200");
    connection.text = "";
    return connection;
  }

  test("is 503 on an open connection while a request is in progress, which is finished", async () => {
    const entered = Promise.withResolvers<void>();
    const pending = Promise.withResolvers<string>();
    await using running = await startHost({
      config: enabled,
      modules: {
        mod_http_slow(module) {
          module.depends("http");
          const hold = () => {
            entered.resolve();
            return pending.promise;
          };
          module.provides("http", { route: { GET: hold } });
        },
      },
    });
    using probe = await readyConnection(running.http);
    using slow = await RawConnection.open(running.http);
    slow.write(get("/slow"));
    const begun = "GET /health/rea";
    const rest = "dy HTTP/1.1\r\nHost: localhost\r\n\r\n";
    // The stop closes an open connection without a request. A connection with a request gets the
    // response. The pipelined response shows that the beginning of the request has arrived.
    probe.write(get("/health/live") + begun);
    assert.equal((await probe.until(responsePattern))[2], "ok\n");
    probe.text = "";
    await entered.promise;

    const stopped = running.host.stop();
    probe.write(rest);
    assert.match(await probe.end(), /^HTTP\/1\.1 503 .*\r\nConnection: close\r\n/s);
    assert.deepEqual([running.host.state, slow.text], ["stopping", ""]);
    pending.resolve("done");
    await stopped;
    assert.match(await slow.end(), /^HTTP\/1\.1 200 .*done$/s);
  });
});
