import assert from "node:assert/strict";
import { test } from "node:test";
import { usableOffers } from "#core/http/websocket/offers.ts";

const deflate = "permessage-deflate";

test("only the offered extensions that can be accepted are left, in their order", () => {
  const cases: Record<string, string | undefined> = {
    [deflate]: deflate,
    [`${deflate}; unknown=1, ${deflate}`]: deflate,
    [`${deflate}; client_max_window_bits`]: `${deflate}; client_max_window_bits`,
    [`foo, ${deflate}; server_max_window_bits="10" , bar; x=y`]: `${deflate}; server_max_window_bits="10"`,
    [`${deflate}; server_max_window_bits=7, ${deflate}; server_max_window_bits=16`]: undefined,
    [`${deflate}; server_max_window_bits`]: undefined,
    [`${deflate}; client_no_context_takeover=1`]: undefined,
    [`${deflate}; client_no_context_takeover; client_no_context_takeover`]: undefined,
    [`${deflate}; toString`]: undefined,
    "x-webkit-deflate-frame": undefined,
  };
  for (const [given, wanted] of Object.entries(cases)) assert.equal(usableOffers(given), wanted, given);
});

test("a malformed header stays unchanged, to be refused", () => {
  for (const given of [`${deflate}; =1`, `${deflate} x`, ",", `${deflate}; x="`])
    assert.equal(usableOffers(given), given);
});
