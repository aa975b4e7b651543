/** Damaged metadata entries: the error names the entry and the remedy. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Requests } from "#modules/mod_http_pinning/requests.ts";
import { Journal } from "#node/content/mfs/journal.ts";
import { unfinishedMigrations } from "#node/migration/open_stores/unfinished.ts";
import { AddedPeers } from "#node/network/swarm/added_peers.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import type { MetadataStore } from "#node/storage/metadata/store.ts";

const request = "modules/http_pinning/requests/anna/0123456789abcdef0123456789ab";

const readers: readonly (readonly [key: string, value: string, read: (metadata: MetadataStore) => Promise<unknown>])[] =
  [
    ["files/root", "\u0001no CID", (metadata) => new Journal(metadata).root()],
    ["files/numbers", "[3,", (metadata) => new Journal(metadata).since()],
    ["files/numbers", '["a"]', (metadata) => new Journal(metadata).load()],
    ["files/change/0000000000000003", '{"at":["a"],"re', (metadata) => new Journal(metadata).state()],
    ["files/change/0000000000000003", "{}", (metadata) => new Journal(metadata).append([])],
    ["node/migrating/12D3Koo", '{"fol', unfinishedMigrations],
    ["peering/12D3Koo", "[1]", (metadata) => AddedPeers.open(metadata)],
    [request, '{"created"', (metadata) => new Requests(metadata).get("anna", request.slice(-28))],
  ];

for (const [key, value, read] of readers) {
  test(`${key} with ${JSON.stringify(value)} is reported as damaged with its key and the remedy`, async () => {
    const metadata = memoryMetadata();
    await metadata.transaction((writer) => writer.put(key, Buffer.from(value)));
    await assert.rejects(
      async () => read(metadata),
      (error: Error & { code?: string }) => {
        assert.equal(error.code, "METADATA_DAMAGED", error.stack);
        assert.match(error.message, /^the entry (\S+) of the metadata is damaged: .*modhost restore, or pg_restore/);
        assert.ok(error.message.includes(` ${key} `), error.message);
        return true;
      },
    );
  });
}
