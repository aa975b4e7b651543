import assert from "node:assert/strict";
import { test } from "node:test";
import { listResponse } from "#modules/mod_http_gateway/routing/lists.ts";
import type { PeerRecords } from "#modules/mod_http_gateway/routing/look_ups.ts";
import { sentHeaders } from "#test/support/sent_headers.ts";

/** An endless lookup that counts the records it has yielded, and notes whether it was ended. */
function endless() {
  const seen = { given: 0, ended: false };
  async function* records(): PeerRecords {
    try {
      for (;;) {
        seen.given += 1;
        yield { Schema: "peer", ID: `peer ${seen.given}`, Addrs: ["/ip4/192.0.2.1/tcp/4001"], Protocols: [] };
      }
    } finally {
      seen.ended = true;
    }
  }
  return { seen, records: records() };
}

const callWith = (accept: string, method = "GET") =>
  ({ request: { method, ...sentHeaders({ accept }), url: {} }, settings: { headers: {} } }) as unknown as Parameters<
    typeof listResponse
  >[2];

test("a document has 100 records, and the lookup ends with the last of them", async () => {
  const { seen, records } = endless();
  const { body } = await listResponse("Providers", records, callWith("application/json"));
  assert.equal(JSON.parse(body as string).Providers.length, 100);
  assert.deepEqual(seen, { given: 100, ended: true });
});

test("a stream continues for as long as it is read", async () => {
  const { seen, records } = endless();
  const { body } = await listResponse("Peers", records, callWith("application/x-ndjson"));
  assert.equal(seen.given, 1);
  let read = 0;
  for await (const line of body as AsyncIterable<string>) {
    assert.match(line, /^\{"Schema":"peer".*\}\n$/);
    read += 1;
    if (read === 150) break;
  }
  assert.deepEqual(seen, { given: 150, ended: true });
});

test("HEAD of a stream looks up one record", async () => {
  const { seen, records } = endless();
  const { body } = await listResponse("Peers", records, callWith("application/x-ndjson", "HEAD"));
  assert.deepEqual([body, seen], ["", { given: 1, ended: true }]);
});
