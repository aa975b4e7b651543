import assert from "node:assert/strict";
import { tracingChannel } from "node:diagnostics_channel";
import { join } from "node:path";
import { after, beforeEach, describe, test } from "node:test";
import { context, SpanStatusCode, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import type { NodeModule } from "modhost/node";
import { request } from "#core/net/http.ts";
import { parseCid } from "#node/formats/cid/text.ts";
import { withHost } from "#test/support/host.ts";

const exporter = new InMemorySpanExporter();
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
trace.setGlobalTracerProvider(provider);
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
after(() => provider.shutdown());

const caller = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" };
const traceparent = `00-${caller.traceId}-${caller.spanId}-01`;
/** What `/shop/inner` was asked with. */
let handedOn: Record<string, string | undefined> = {};

const host = withHost({
  config: (folder) => ({
    modules_enabled: ["http", "http_api", "http_traces"],
    node_offline: true,
    node_repo: join(folder, "repo"),
  }),
  modules: {
    mod_shop(module) {
      module.depends("http");
      module.provides("http", {
        route: {
          "GET /outer/*": async () => {
            await new Promise((resolve) => setImmediate(resolve));
            const own = trace.getTracer("shop").startSpan("own work");
            own.end();
            const port = module.listening()[0]?.port;
            return (await request(`http://127.0.0.1:${port}/shop/inner`)).body;
          },
          "GET /inner": ({ request: { headers, id } }) => {
            handedOn = {
              traceparent: headers.traceparent,
              tracestate: headers.tracestate,
              given: headers.x_request_id,
              id,
            };
            return "inner";
          },
          "WS /talk": (event) => {
            const connection = event.accept();
            void connection.send("hello");
          },
          "GET /fails": () => {
            throw new Error("on purpose");
          },
        },
      });
    },
  },
});

/** The spans that have ended, once there are as many. */
async function spans(count: number): Promise<ReadableSpan[]> {
  for (let turn = 0; exporter.getFinishedSpans().length < count && turn < 500; turn += 1) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const all = exporter.getFinishedSpans();
  assert.equal(all.length, count, all.map(({ name }) => name).join(", "));
  return all;
}

const named = (all: readonly ReadableSpan[], name: string) => {
  const found = all.find((span) => span.name === name);
  assert.ok(found !== undefined, `${name} is among ${all.map((span) => span.name).join(", ")}`);
  return found;
};

describe("an OpenTelemetry SDK", () => {
  beforeEach(() => exporter.reset());
  const get = (path: string, headers: Record<string, string> = {}, method = "GET") =>
    fetch(`http://127.0.0.1:${host().http}${path}`, { headers, method }).then((answer) => answer.text());

  test("receives a span a request, below the caller's, and hands it on to what the handler asks", async () => {
    await get("/shop/outer/1", { traceparent, tracestate: "vendor=1", "x-request-id": "from-the-proxy-7" });
    const all = await spans(3);
    const outer = named(all, "GET /shop/outer/*");
    const inner = named(all, "GET /shop/inner");
    assert.equal(outer.spanContext().traceId, caller.traceId);
    assert.equal(outer.parentSpanContext?.spanId, caller.spanId);
    assert.equal(outer.parentSpanContext?.isRemote, true);
    assert.equal(inner.spanContext().traceId, caller.traceId);
    assert.equal(inner.parentSpanContext?.spanId, outer.spanContext().spanId);
    assert.equal(named(all, "own work").parentSpanContext?.spanId, outer.spanContext().spanId, "a span of the module");
    assert.deepEqual(handedOn, {
      traceparent: `00-${caller.traceId}-${outer.spanContext().spanId}-01`,
      tracestate: "vendor=1",
      given: "from-the-proxy-7",
      id: "from-the-proxy-7",
    });
    const { attributes } = outer;
    assert.equal(attributes["modhost.module"], "shop");
    assert.equal(attributes["http.route"], "/shop/outer/*");
    assert.equal(attributes["http.response.status_code"], 200);
    assert.equal(attributes["modhost.request.id"], "from-the-proxy-7");
    assert.equal(attributes["url.path"], "/shop/outer/1");
  });

  test("a request of nobody begins a trace, and one that fails says so", async () => {
    await get("/shop/fails", { traceparent: "00-00000000000000000000000000000000-b7ad6b7169203331-01" });
    const [span] = await spans(1);
    assert.equal(span?.name, "GET /shop/fails");
    assert.equal(span?.parentSpanContext, undefined);
    assert.deepEqual(span?.status, { code: SpanStatusCode.ERROR, message: "on purpose" });
    assert.equal(span?.events[0]?.name, "exception");
    exporter.reset();
    await get("/nowhere");
    const [unrouted] = await spans(1);
    assert.deepEqual([unrouted?.name, unrouted?.attributes["http.response.status_code"]], ["GET", 404]);
  });

  test("a websocket is one span, from its handshake to its end", async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${host().http}/shop/talk`);
    await new Promise((resolve) => socket.addEventListener("message", resolve));
    assert.equal(exporter.getFinishedSpans().length, 0);
    socket.close();
    const [span] = await spans(1);
    assert.deepEqual([span?.name, span?.attributes["http.response.status_code"]], ["WS /shop/talk", 101]);
  });

  test("a command is a span below its request, and a block that it fetches one below the command", async () => {
    const node = host().host.exports<NodeModule>("node");
    const text = "bafkreibm6jg3ux5qumhcn2b3flc3tyu6dmlb4xa7u5bf44yegnrjhc4yeq";
    const wanted: string[] = [];
    node.lowLevel.blocks.source = {
      async fetch(cid) {
        wanted.push(String(cid));
        return Buffer.from("fetched");
      },
    };
    try {
      assert.equal(await get(`/api/v0/cat?arg=${text}`, {}, "POST"), "fetched");
    } finally {
      node.lowLevel.blocks.source = undefined;
    }
    assert.deepEqual(wanted, [String(parseCid(text))]);
    const all = await spans(3);
    const command = named(all, "command cat");
    const block = named(all, "fetch block");
    assert.equal(command.parentSpanContext?.spanId, named(all, "POST /api/v0/*").spanContext().spanId);
    assert.equal(block.parentSpanContext?.spanId, command.spanContext().spanId);
    assert.equal(block.attributes["ipfs.cid"], text);
  });

  test("nothing is left of it after its unload", async () => {
    await host().host.unload("http_traces");
    for (const name of ["request", "command", "block"]) {
      assert.equal(tracingChannel(`modhost:${name}`).hasSubscribers, false, name);
    }
    assert.deepEqual(host().host.residue("http_traces"), []);
    await get("/shop/outer/1", { traceparent });
    assert.equal(handedOn.traceparent, undefined);
    assert.deepEqual(
      (await spans(1)).map(({ name }) => name),
      ["own work"],
    );
    await host().host.load("http_traces");
  });
});
