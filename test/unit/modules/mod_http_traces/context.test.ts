import assert from "node:assert/strict";
import { test } from "node:test";
import { context, trace } from "@opentelemetry/api";
import { BasicTracerProvider } from "@opentelemetry/sdk-trace-base";
import { contextHeaders, readContext } from "#modules/mod_http_traces/w3c.ts";
import { startHost } from "#test/support/host.ts";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const spanId = "b7ad6b7169203331";

test("a malformed W3C header names no span", () => {
  assert.deepEqual(readContext(`00-${traceId}-${spanId}-01`, undefined), {
    traceId,
    spanId,
    traceFlags: 1,
    isRemote: true,
  });
  assert.equal(readContext(`cc-${traceId}-${spanId}-09-more`, undefined)?.traceFlags, 1, "a later version");
  for (const wrong of [
    "",
    `00-${traceId}-${spanId}`,
    `00-${traceId}-${spanId}-01-more`,
    `ff-${traceId}-${spanId}-01`,
    `00-${"0".repeat(32)}-${spanId}-01`,
    `00-${traceId}-${"0".repeat(16)}-01`,
    `00-${traceId.toUpperCase()}-${spanId}-01`,
  ]) {
    assert.equal(readContext(wrong, "a=1"), undefined, wrong);
  }
  const state = readContext(`00-${traceId}-${spanId}-00`, "a=1,b=2");
  assert.deepEqual(state && contextHeaders(state), {
    traceparent: `00-${traceId}-${spanId}-00`,
    tracestate: "a=1,b=2",
  });
  assert.equal(readContext(`00-${traceId}-${spanId}-00`, "a".repeat(600))?.traceState, undefined);
});

test("without an SDK there are no spans, and log lines contain no ids", async () => {
  await using host = await startHost({
    config: { modules_enabled: ["http", "http_traces"] },
    modules: {
      mod_a(module) {
        module.depends("http");
        const logs = () => {
          module.log.info("a line");
          return "";
        };
        module.provides("http", { route: { "GET /": logs } });
      },
    },
  });
  await fetch(`http://127.0.0.1:${host.http}/a`);
  assert.match(host.log(), /"a line"/);
  assert.doesNotMatch(host.log(), /trace_id/);
});

test("without the context manager of an SDK, the module stores the context: handlers see their span", async () => {
  trace.setGlobalTracerProvider(new BasicTracerProvider());
  let seen: string | undefined;
  await using host = await startHost({
    config: { modules_enabled: ["http", "http_traces"], traces_take_over: "none" },
    modules: {
      mod_a(module) {
        module.depends("http");
        module.provides("http", {
          route: {
            "GET /": async () => {
              await new Promise((resolve) => setImmediate(resolve));
              seen = trace.getSpan(context.active())?.spanContext().traceId;
              return "";
            },
          },
        });
      },
    },
  });
  await fetch(`http://127.0.0.1:${host.http}/a`, { headers: { traceparent: `00-${traceId}-${spanId}-01` } });
  assert.match(seen ?? "", /^[0-9a-f]{32}$/);
  assert.notEqual(seen, traceId, "with the option none, no context is used");
});
