/**
 * Bodies that fail before their first byte: nothing has been sent, so the client gets the error
 * page.
 */
import assert from "node:assert/strict";
import { createReadStream } from "node:fs";
import { PassThrough, Readable } from "node:stream";
import { describe } from "node:test";
import { event_stream } from "#core/http/index.ts";
import type { HttpEvent, RouteTable } from "#core/types.ts";
import { serving, withHost } from "#test/support/host.ts";
import { overEach } from "#test/support/transports.ts";

// biome-ignore lint/correctness/useYield: it fails first
async function* broken(): AsyncGenerator<string> {
  throw new Error("no first piece");
}

const streams: Readonly<Record<string, () => unknown>> = {
  file: () => createReadStream("/nonexistent"),
  generator: broken,
  destroyed: () => new PassThrough().destroy(),
  failed: () => new PassThrough().destroy(new Error("gone")),
  readable: () => Readable.from(broken()),
  web: () => ReadableStream.from(broken()),
  blob: () => new FailingBlob(["x"]).stream(),
  number: () => Readable.from([5]),
};

/** A stream of a file that is gone when it is read. */
class FailingBlob extends Blob {
  override stream(): ReturnType<Blob["stream"]> {
    return new ReadableStream({ pull: (controller) => controller.error(new Error("gone blob")) });
  }
}

const others: RouteTable = {
  "GET /short": () => ({ headers: { content_length: 5 }, body: Readable.from([]) }),
  "GET /long": () => ({ headers: { content_length: 1 }, body: Readable.from(["more"]) }),
  "GET /events": () =>
    event_stream(
      (async function* () {
        yield { event: "a\nb", data: "" };
      })(),
    ),
  "GET /sent": async (event: HttpEvent) => {
    await event_stream(event).send({ event: "a\nb", data: "" });
  },
};

const route: RouteTable = {
  ...Object.fromEntries(Object.entries(streams).map(([name, stream]) => [`GET /${name}`, stream as () => never])),
  ...others,
};

const apart = `
import { createReadStream } from "node:fs";
import { PassThrough } from "node:stream";
import { event_stream } from "modhost/net/http/server";
export const isolated = true;
export const depends = ["http"];
export default (module) => module.provides("http", { route: {
  "GET /file": () => createReadStream("/nonexistent"),
  "GET /generator": async function* () { throw new Error("no first piece"); },
  "GET /destroyed": () => new PassThrough().destroy(),
  "GET /events": () => event_stream((async function* () { yield { event: "a\\nb", data: "" }; })()),
} });
`;

const host = withHost({
  config: { plugin_autoload: true },
  plugins: { mod_apart: apart },
  modules: {
    mod_bare: serving({ route }),
    mod_behind: serving({ route }),
    mod_before(module) {
      module.depends("http");
      module.provides("http-middleware", { middleware: (_: unknown, next: () => unknown) => next(), apps: ["behind"] });
    },
    mod_koa: serving({
      middleware: (context: { path: string; body: unknown }) => {
        context.body = streams[context.path.slice(1)]?.();
      },
    }),
  },
});

describe("a body that fails before its first byte", () => {
  const cases = {
    bare: [...Object.keys(streams), "short", "long", "events", "sent"],
    behind: [...Object.keys(streams), "short", "events", "sent"],
    // Koa accepts no iterables, and nobody listens for the error of a stream that failed before its
    // middleware ran.
    koa: Object.keys(streams).filter((name) => name !== "generator" && name !== "failed"),
    apart: ["file", "generator", "destroyed", "events"],
  };
  for (const [app, names] of Object.entries(cases)) {
    overEach(host, `is the error page, in the app ${app}`, async (client) => {
      for (const name of names) {
        const { status, text } = await client.request(`/${app}/${name}`);
        assert.deepEqual([status, /^500/.test(text) || text.includes("500")], [500, true], `${app} ${name}: ${text}`);
      }
      assert.doesNotMatch(host().log(), /Uncaught/);
    });
  }
});
