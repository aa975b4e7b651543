import assert from "node:assert/strict";
import { test } from "node:test";
import { formatDuration, parseDuration } from "#node/util/go/duration.ts";

test("durations are printed as Go prints them", () => {
  const printed: Readonly<Record<string, string>> = {
    "0": "0s",
    "1m": "1m0s",
    "60m": "1h0m0s",
    "1h1.5s": "1h0m1.5s",
    "36h": "36h0m0s",
    "2h2m22ns": "2h2m0.000000022s",
    "1500ms": "1.5s",
    "999ms": "999ms",
    "1.5ms": "1.5ms",
    "1500ns": "1.5µs",
    "12ns": "12ns",
    "-90s": "-1m30s",
    "59.999s": "59.999s",
  };
  for (const [text, expected] of Object.entries(printed)) assert.equal(formatDuration(parseDuration(text)), expected);
});
