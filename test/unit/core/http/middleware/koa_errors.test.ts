/**
 * The usual error handlers of Koa, and middleware of the configuration that fails after its
 * request.
 */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import Koa, { type Context, type Next } from "koa";
import type { HttpModule } from "#core/http/index.ts";
import { startHost, type TestHost } from "#test/support/host.ts";

/** The error handler from Koa's documentation. */
const handler = async (context: Context, next: Next) => {
  try {
    await next();
  } catch (error) {
    context.status = 418;
    context.body = { error: (error as Error).message };
    context.app.emit("error", error, context);
  }
};
const fails = () => {
  throw new Error("mine");
};
const usual = `export default () => ${handler.toString()};`;
/** A factory whose second parameter is not the application, as that of pino. */
const logger =
  "export default (options, stream) => (context, next) => { stream?.write(options.word); return next(); };";
const failing = "export default () => () => { throw new Error('mine'); };";
/** Exposes the asynchronous context in which it runs, so that a later failure can be simulated. */
const late = `import { AsyncLocalStorage } from "node:async_hooks";
export default () => (context, next) => { globalThis.carelessMiddleware = AsyncLocalStorage.snapshot(); return next(); };`;

/** Needs the application as its second argument, like koa-session. */
const session = "export default (options, app) => { app.context.sessions = 1; return (context, next) => next(); };";

const heard: unknown[] = [];
class Heard extends Koa {
  override onerror(error: Error) {
    heard.push(error.message);
  }
}

describe("an error that middleware reports by app.emit", () => {
  let host: TestHost;
  before(async () => {
    host = await startHost({
      prepare: async (folder) => {
        await writeFile(join(folder, "usual.js"), usual);
        await writeFile(join(folder, "logger.js"), logger);
        await writeFile(join(folder, "failing.js"), failing);
        await writeFile(join(folder, "late.js"), late);
        await writeFile(join(folder, "session.js"), session);
      },
      config: (folder) => ({
        http_middleware: [
          { use: join(folder, "logger.js"), options: { word: "a" } },
          { use: join(folder, "session.js"), application: true, apps: ["before"] },
          { use: join(folder, "usual.js"), apps: ["before"] },
          { use: join(folder, "failing.js"), apps: ["before", "broken"] },
          { use: join(folder, "late.js"), apps: ["late"], name: "tardy" },
        ],
      }),
      modules: {
        before: (module) => module.provides("http", { route: { GET: () => "here" } }),
        broken: (module) => module.provides("http", { route: { GET: () => "here" } }),
        late: (module) => module.provides("http", { route: { GET: () => "here" } }),
        single: (module) => module.provides("http", { middleware: [handler as never, fails] }),
        whole: (module) => module.provides("http", { middleware: new Koa().use(handler).use(fails) as never }),
        silent: (module) => {
          const app = new Koa().use(handler).use(fails);
          app.silent = true;
          module.provides("http", { middleware: app as never });
        },
        heard: (module) => module.provides("http", { middleware: new Heard().use(handler).use(fails) as never }),
      },
    });
  });
  after(() => host.stop());

  for (const app of ["single", "whole", "silent", "heard"]) {
    test(`is logged, and the client gets the middleware's response: ${app}`, async () => {
      const reply = await host.client("HTTP/1.1").request(`/${app}`);
      assert.equal(reply.status, 418);
      assert.deepEqual(JSON.parse(reply.text), { error: "mine" });
      const isLogged = host
        .log()
        .split("\n")
        .some((line) => line.includes(`"module":"${app}"`) && /reports: Error: mine/.test(line));
      assert.equal(isLogged, app === "single" || app === "whole");
    });
  }

  test("goes to the application's own onerror if it has one", () => {
    assert.deepEqual(heard, ["mine"]);
  });

  test("is logged for middleware before an app, too", async () => {
    const reply = await host.client("HTTP/1.1").request("/before");
    assert.deepEqual([reply.status, JSON.parse(reply.text)], [418, { error: "mine" }]);
    assert.match(host.log(), /GET \/before its middleware reports: Error: mine/);
  });

  test("causes a 500 page when configured middleware throws, and is logged by its name in the configuration", async () => {
    const { status } = await host.client("HTTP/1.1").request("/broken");
    assert.equal(status, 500);
    assert.match(host.log(), /GET \/broken failed in the middleware [^ ]*failing\.js: Error: mine/);
  });

  test("counts for configured middleware also when it fails later", async () => {
    assert.equal((await host.client("HTTP/1.1").request("/late")).text, "here");
    const { carelessMiddleware: within } = globalThis as unknown as { carelessMiddleware<R>(run: () => R): R };
    const error = Object.assign(new Error("of a socket"), { stack: "Error: of a socket" });
    assert.equal(
      within(() => host.host.contain(error)),
      true,
    );
    assert.match(host.log(), /"module":"http_middleware tardy","msg":"failed while [^"]*of a socket/);
    const [layer] = host.host
      .exports<HttpModule>("http")
      .middleware()
      .filter(({ name }) => name === "tardy");
    assert.equal(layer?.failed, 1);
  });
});
