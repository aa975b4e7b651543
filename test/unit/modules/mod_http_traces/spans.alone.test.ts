import assert from "node:assert/strict";
import { channel, subscribe, tracingChannel, unsubscribe } from "node:diagnostics_channel";
import { readFile } from "node:fs/promises";
import { type IncomingMessage, Server, type ServerResponse } from "node:http";
import { join } from "node:path";
import { after, beforeEach, describe, test } from "node:test";
import { context, createContextKey, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
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
import { eventually } from "#test/support/eventually.ts";
import { withHost } from "#test/support/host.ts";
import { rawExchange } from "#test/support/raw.ts";
import type { Call, Client } from "#test/support/transports.ts";

const exporter = new InMemorySpanExporter();
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
trace.setGlobalTracerProvider(provider);
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
after(() => provider.shutdown());

const caller = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" };
const traceparent = `00-${caller.traceId}-${caller.spanId}-01`;
/** The headers with which `/shop/inner` was requested. */
let handedOn: Record<string, string | undefined> = {};

const host = withHost({
  config: (folder) => ({
    modules_enabled: ["http", "http_api", "http_log", "http_traces", "apart"],
    http_log: true,
    http_log_file: join(folder, "requests.log"),
    api_tokens: ["hunter2-the-second-one"],
    node_offline: true,
    node_repo: join(folder, "repo"),
  }),
  plugins: {
    mod_apart: `export const isolated = true;
      export const depends = ["http"];
      export default function apart(module) {
        const answer = async () => {
          await new Promise((resolve) => setImmediate(resolve));
          module.log.info("within an isolated module");
          return "";
        };
        module.provides("http", { route: { "GET /": answer } });
      }`,
  },
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
          "GET /secret": () => {
            throw new Error("cannot sign in with hunter2-the-second-one");
          },
          "GET /logs": async () => {
            await new Promise((resolve) => setImmediate(resolve));
            module.log.info({ user: 7 }, "within a request");
            return "";
          },
        },
      });
    },
  },
});

/** Returns the spans that have ended, once there are this many. */
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

/**
 * Makes spans for Node's servers like `@opentelemetry/instrumentation-http`, until the returned
 * function is called.
 */
function instrumentServers(): () => void {
  const emit = Server.prototype.emit as (...values: unknown[]) => boolean;
  const metadataKey = createContextKey("OpenTelemetry SDK Context Key RPC_METADATA");
  Server.prototype.emit = function (this: Server, event: string, ...values: unknown[]) {
    if (event !== "request") return emit.call(this, event, ...values);
    const span = trace.getTracer("instrumentation").startSpan("GET", { kind: SpanKind.SERVER }, ROOT_CONTEXT);
    const metadata: { type: string; route?: string } = { type: "http" };
    const [, response] = values as [IncomingMessage, ServerResponse];
    response.once("close", () => {
      span.updateName(metadata.route ?? "none");
      span.end();
    });
    return context.with(trace.setSpan(ROOT_CONTEXT, span).setValue(metadataKey, metadata), () =>
      emit.call(this, event, ...values),
    );
  } as typeof Server.prototype.emit;
  return () => void (Server.prototype.emit = emit as typeof Server.prototype.emit);
}

describe("an OpenTelemetry SDK", () => {
  beforeEach(() => exporter.reset());
  const get = (path: string, headers: Record<string, string> = {}, method = "GET") =>
    fetch(`http://127.0.0.1:${host().http}${path}`, { headers, method }).then((response) => response.text());

  test("receives a span for each request, below that of the caller, and passes it on to requests of the handler", async () => {
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

  test("receives a new trace for a request without a caller, and failures are marked", async () => {
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

  test("receives one span for a websocket, from its handshake to its end", async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${host().http}/shop/talk`);
    await new Promise((resolve) => socket.addEventListener("message", resolve));
    assert.equal(exporter.getFinishedSpans().length, 0);
    socket.close();
    const [span] = await spans(1);
    assert.deepEqual([span?.name, span?.attributes["http.response.status_code"]], ["WS /shop/talk", 101]);
  });

  test("receives a span for a command below its request, and for a fetched block below the command", async () => {
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

  test("receives attributes by the conventions for HTTP servers", async () => {
    const ask = async (call: Call, by: Client["name"] = "HTTP/1.1") => {
      exporter.reset();
      await host().client(by).request(call);
      const [span] = await spans(1);
      return span as ReadableSpan;
    };
    const head = await ask({ method: "HEAD", path: "/shop/logs?page=2", headers: { host: "shop.example:8080" } });
    assert.deepEqual([head.name, head.kind], ["HEAD /shop/logs", SpanKind.SERVER]);
    assert.deepEqual(
      ["http.request.method", "server.address", "server.port", "network.protocol.version", "url.query"].map(
        (name) => head.attributes[name],
      ),
      ["HEAD", "shop.example", 8080, "1.1", "page=2"],
    );
    const bare = await ask({ path: "/shop/logs", headers: { host: "[::1]" } });
    assert.deepEqual([bare.attributes["server.address"], bare.attributes["server.port"]], ["::1", 80]);
    const failed = await ask({ path: "/shop/fails" });
    assert.equal(failed.attributes["error.type"], "500");
    const invented = await ask({ method: "PROPFIND", path: "/shop/logs" });
    assert.deepEqual(
      [invented.name, invented.attributes["http.request.method"], invented.attributes["http.request.method_original"]],
      ["HTTP", "_OTHER", "PROPFIND"],
    );
    const second = await ask({ path: "/shop/logs" }, "HTTP/2");
    assert.equal(second.attributes["network.protocol.version"], "2");
  });

  test("receives a span for a request that is refused before it reaches an app", async () => {
    await rawExchange(host().http, "GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
    const [span] = await spans(1);
    assert.deepEqual([span?.name, span?.attributes["http.response.status_code"]], ["GET", 400], "it names no host");
  });

  test("receives no secret that the log would mask", async () => {
    await get("/shop/logs;token=hidden?api_key=hidden&page=2", { "user-agent": "tool/1 (?token=hidden)" });
    await get("/api/v0/nothing?arg=hidden", {}, "POST");
    await get("/shop/secret");
    const all = await spans(3);
    const shown = JSON.stringify(all.map(({ attributes, events, status }) => [attributes, events, status]));
    assert.doesNotMatch(shown, /hidden|hunter2/);
    assert.match(shown, /"url\.path":"\/shop\/logs;token=\*\*\*".*"url\.query":"api_key=\*\*\*&page=2"/);
    assert.match(shown, /cannot sign in with \(secret\)/);
  });

  test("receives a span inside that of an instrumentation, which gets the route", async () => {
    const stop = instrumentServers();
    try {
      await get("/shop/outer/1", { traceparent });
    } finally {
      stop();
    }
    const all = await spans(5);
    const [outer, inner] = all.filter(({ kind }) => kind === SpanKind.SERVER).toReversed();
    assert.deepEqual([outer?.name, inner?.name], ["/shop/outer/*", "/shop/inner"], "spans of the instrumentation");
    const own = all.filter(({ kind, name }) => kind === SpanKind.INTERNAL && name !== "own work").toReversed();
    assert.deepEqual(
      own.map(({ name, parentSpanContext }) => [name, parentSpanContext?.spanId]),
      [
        ["GET /shop/outer/*", outer?.spanContext().spanId],
        ["GET /shop/inner", inner?.spanContext().spanId],
      ],
    );
  });

  test("sends no second traceparent if an instrumentation of undici sends one", async () => {
    const instrumentation = () => undefined;
    subscribe("undici:request:create", instrumentation);
    await get("/shop/outer/1");
    unsubscribe("undici:request:create", instrumentation);
    assert.equal(handedOn.traceparent, undefined);
    assert.match(handedOn.given ?? "", /^\w+-\w+$/, "the id of the request is passed on");
    await spans(3);
  });

  test("finds the ids of their spans in log lines", async () => {
    await get("/shop/logs", { traceparent });
    await get("/apart/", { traceparent });
    await get("/shop/fails", { traceparent });
    const all = await spans(3);
    const lines = (text: string) =>
      text
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as Record<string, unknown>);
    const idsOf = (line: Record<string, unknown> | undefined) => [line?.trace_id, line?.span_id];
    const own = (name: string) => [caller.traceId, named(all, name).spanContext().spanId];
    const logged = lines(host().log());
    assert.deepEqual(idsOf(logged.findLast(({ msg }) => msg === "within a request")), own("GET /shop/logs"));
    assert.deepEqual(idsOf(logged.findLast(({ level }) => level === "error")), own("GET /shop/fails"));
    const apart = () => lines(host().log()).find(({ msg }) => msg === "within an isolated module");
    await eventually("the line of the isolated module", apart);
    assert.deepEqual(idsOf(apart()), own("GET /apart/"));
    assert.deepEqual(idsOf(logged[0]), [undefined, undefined], "no request, no span");
    await host().host.reopenLogs();
    const requests = await eventuallyLines();
    assert.deepEqual(idsOf(requests.findLast(({ path }) => path === "/shop/logs")), own("GET /shop/logs"));

    async function eventuallyLines(): Promise<Record<string, unknown>[]> {
      let found: Record<string, unknown>[] = [];
      await eventually("the line of the request", async () => {
        found = lines(await readFile(join(host().folder, "requests.log"), "utf8"));
        return found.at(-1)?.path === "/shop/fails";
      });
      return found;
    }
  });

  test("receives nothing after the unload of the module", async () => {
    await host().host.unload("http_traces");
    for (const name of ["request", "command", "block"]) {
      assert.equal(tracingChannel(`modhost:${name}`).hasSubscribers, false, name);
    }
    for (const name of ["client", "log"]) assert.equal(channel(`modhost:${name}`).hasSubscribers, false, name);
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
