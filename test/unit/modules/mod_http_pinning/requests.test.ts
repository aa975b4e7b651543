import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryStores } from "modhost/node";
import { readFilter } from "#modules/mod_http_pinning/filter.ts";
import { Requests } from "#modules/mod_http_pinning/requests.ts";

const cid = "bafkreie5qrjvaw64n4tjm6hbnm7fnqvcssfed4whsjqxzslbd3jwhsk3mm";

test("requests of the same millisecond get different times, and are listed newest first", async () => {
  const requests = new Requests(memoryStores().metadata);
  const added = (
    await Promise.all(Array.from({ length: 50 }, (_, at) => requests.add("anna", { cid, name: String(at) })))
  ).flat();
  assert.equal(new Set(added.map(({ created }) => created)).size, 50);
  const { results } = await requests.list("anna", readFilter("status=queued&limit=50"));
  assert.deepEqual(
    results.map(({ wish }) => Number(wish.name)),
    Array.from({ length: 50 }, (_, at) => 49 - at),
  );
});

test("requests stay in order and pages skip none after the clock was set back", async (t) => {
  const { metadata } = memoryStores();
  t.mock.timers.enable({ apis: ["Date"], now: 2_000_000_000_000 });
  await new Requests(metadata).add("anna", { cid, name: "0" });
  t.mock.timers.setTime(1_000_000_000_000);
  await new Requests(metadata).add("anna", { cid, name: "1" });
  const requests = new Requests(metadata);
  const [newest] = await requests.add("anna", { cid, name: "2" });
  assert.equal(newest?.created, 2_000_000_000_002);
  const [other] = await requests.add("ben", { cid });
  assert.equal(other?.created, 1_000_000_000_000, "a user has nothing to do with the requests of others");
  const names: unknown[] = [];
  for (let before = ""; ; ) {
    const { results } = await requests.list("anna", readFilter(`status=queued&limit=1${before}`));
    const [found] = results;
    if (found === undefined) break;
    names.push(found.wish.name);
    before = `&before=${new Date(found.created).toISOString()}`;
  }
  assert.deepEqual(names, ["2", "1", "0"]);
});

test("a user name with a slash gives no access to the requests of others", async () => {
  const requests = new Requests(memoryStores().metadata);
  for (const user of ["", "anna", "anna/ben", "ann"]) await requests.add(user, { cid, name: user });
  for (const user of ["", "anna", "anna/ben", "ann"]) {
    const { count, results } = await requests.list(user, readFilter("status=queued"));
    assert.deepEqual([count, results[0]?.wish.name], [1, user]);
    for (const other of ["", "anna", "anna/ben", "ann"]) {
      const found = await requests.get(other, results[0]?.id ?? "");
      assert.equal(found !== undefined, other === user);
    }
  }
});
