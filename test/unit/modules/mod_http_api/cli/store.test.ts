/** `modhost node store`, on a store that a host has used. */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { createNode } from "#node/index.ts";
import { carKey } from "#node/storage/shared/segments/names.ts";
import { noSharedStore, sharedStore } from "#test/support/engines/shared_store.ts";
import { Place } from "./support.ts";

test("a shared store is described, compared with its objects, and rid of what was left behind", {
  skip: noSharedStore,
}, async () => {
  await using place = await Place.make();
  const { settings, s3 } = await sharedStore();
  const file = join(place.folder, "host.json");
  await writeFile(file, JSON.stringify({ node_store: settings }));
  const store = (...words: string[]) => place.node(["store", ...words, "--settings", file]);
  await using node = await createNode({ repo: join(place.folder, "shared"), store: settings, offline: true });
  await node.add("of a shared store");

  const shown = await store("stat", "--json");
  const figures = JSON.parse(shown.stdout);
  assert.equal(figures.hosts, 1);
  assert.ok(figures.blocks >= 1 && figures.segments >= 1 && figures.live <= figures.bytes, shown.stdout);
  assert.match((await store("stat")).stdout, /^Hosts {5}1$/m);
  for (const more of [[], ["--read"]]) {
    const { code, stdout } = await store("verify", ...more);
    assert.equal(code, 0);
    assert.match(stdout, /segments, nothing is wrong/);
  }

  const bucket = s3.bucket("bucket");
  const prefix = settings.s3.replace("s3://bucket/", "");
  const abandoned = carKey("zz-1");
  bucket.put(`${prefix}/${abandoned}`, Buffer.from("left behind"), {}, false);
  assert.equal((await store("orphans")).stdout, `${abandoned}\n1 objects\n`);
  assert.equal((await store("orphans", "--remove")).stdout, `${abandoned}\n1 objects removed\n`);
  assert.equal((await store("orphans")).stdout, "0 objects\n");

  const isSegment = (key: string) => key.startsWith(`${prefix}/`) && key.endsWith(".car");
  const segment = [...bucket.objects.keys()].find(isSegment) ?? "none";
  assert.ok(bucket.objects.delete(segment));
  const damaged = await store("verify");
  assert.equal(damaged.code, 1);
  assert.match(damaged.stdout, /\.car is missing\n1 faults\n$/);
});

test("a configuration without a shared store is told so", async () => {
  await using place = await Place.make();
  const file = join(place.folder, "host.json");
  await writeFile(file, "{}");
  const { code, stderr } = await place.node(["store", "stat", "--settings", file]);
  assert.equal(code, 1);
  assert.match(stderr, /has no option node_store: name the config file/);
});
