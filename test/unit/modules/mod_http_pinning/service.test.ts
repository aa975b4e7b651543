import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import type { NodeModule } from "modhost/node";
import type { Module } from "#core/types.ts";
import { startHost } from "#test/support/host.ts";
import { untilRight } from "#test/support/network/report.ts";
import { addUnpinned, type PinStatus, pinsOf, type ServiceHost, startPinning, tokens } from "./support.ts";

/** Returns the CID of content that nobody has. */
const unknown = (at: number) => `bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52${"abcdefghijkl"[at]}y`;

const failure = (reason: string, details: string) => ({ error: { reason, details } });

describe("a pinning service without a network", () => {
  let host: ServiceHost;
  before(async () => {
    host = await startPinning();
  });
  after(() => host.stop());
  beforeEach(async () => {
    for (const token of Object.keys(tokens)) {
      const { results } = await host.list("?status=queued,pinning,pinned,failed&limit=1000", token);
      for (const { requestid } of results) await host.ask("DELETE", `/pins/${requestid}`, undefined, token);
    }
  });

  /** Waits until the user has this number of pins, and returns them. */
  const pinned = (count: number) =>
    untilRight(
      () => host.list(),
      (page) => page.count === count,
    );
  const gone = (cid: string) =>
    untilRight(
      () => pinsOf(host),
      (pins) => !pins.includes(cid),
    );

  test("a request without a known token is refused at every path", async () => {
    const refusal = failure("UNAUTHORIZED", "The access token is missing or unknown");
    for (const token of ["", "token-of-nobody", "Token-of-anna"]) {
      for (const [method, path] of [
        ["GET", "/pins"],
        ["POST", "/pins"],
        ["DELETE", "/pins/x"],
        ["GET", "/elsewhere"],
      ] as const) {
        const { status, body, headers } = await host.ask(method, path, undefined, token);
        assert.deepEqual([status, body, headers.get("www-authenticate")], [401, refusal, "Bearer"]);
      }
    }
    assert.ok(!host.log().includes("token-of"));
  });

  test("stored content is pinned, and the response has the form of the API", async () => {
    const cid = await addUnpinned(host, "to be kept\n");
    const wish = { cid, name: "kept", origins: ["/ip4/127.0.0.1/tcp/1", "nonsense"], meta: { app: "test" } };
    const sentAt = Date.now();
    const { requestid, created, ...rest } = await host.pin({ ...wish, beyond: "the API" });
    assert.deepEqual(rest, { status: "queued", pin: wish, delegates: [] });
    assert.match(requestid, /^[0-9a-f]+$/);
    assert.ok(Date.parse(created) >= sentAt && Date.parse(created) <= Date.now());
    const expected = { requestid, created, ...rest, status: "pinned" };
    assert.deepEqual(await host.until(requestid, "pinned"), expected);
    assert.deepEqual(await host.list(), { count: 1, results: [expected] });
    assert.ok((await pinsOf(host)).includes(cid));
    assert.ok((await host.call("pin/ls?name=kept")).text.includes(cid), "the node's pin has the name, too");
  });

  test("a pin whose content is missing fails with the reason", async () => {
    const { requestid } = await host.pin({ cid: unknown(0) });
    const { status, info } = await host.until(requestid, "failed");
    assert.deepEqual([status, info], ["failed", { status_details: "merkledag: not found" }]);
    assert.equal((await host.list()).count, 0);
    assert.equal((await host.list("?status=failed")).count, 1);
  });

  test("every filter selects the right pins", async () => {
    const names = ["Alpha", "alpha", "alphabet", "beta", undefined];
    const made: PinStatus[] = [];
    for (const [at, name] of names.entries()) {
      const cid = await addUnpinned(host, `file ${at}\n`);
      made.push(await host.pin({ cid, ...(name === undefined ? {} : { name }), meta: { at: String(at), all: "yes" } }));
    }
    await pinned(5);
    const { requestid: failed } = await host.pin({ cid: unknown(1), name: "alpha" });
    await host.until(failed, "failed");
    const found = async (query: string) =>
      (await host.list(`?${query}`)).results.map(({ requestid }) =>
        made.findIndex((one) => one.requestid === requestid),
      );
    const cidOf = (at: number) => made[at]?.pin.cid as string;
    const when = (at: number) => encodeURIComponent(made[at]?.created as string);
    for (const [query, expected] of [
      ["", [4, 3, 2, 1, 0]],
      ["name=alpha", [1]],
      ["name=alpha&match=exact", [1]],
      ["name=alpha&match=iexact", [1, 0]],
      ["name=alpha&match=partial", [2, 1]],
      ["name=ALPHA&match=ipartial", [2, 1, 0]],
      ["name=alpha&status=pinned,failed", [-1, 1]],
      ["name=alpha&status=pinned&status=failed", [-1, 1]],
      ["status=queued,pinning", []],
      [`cid=${cidOf(3)}`, [3]],
      [`cid=${cidOf(3)},${cidOf(0)}`, [3, 0]],
      [`cid=${cidOf(3)}&cid=${cidOf(0)}`, [3, 0]],
      [`before=${when(2)}`, [1, 0]],
      [`after=${when(2)}`, [4, 3]],
      [`before=${when(4)}&after=${when(1)}`, [3, 2]],
      ["before=1990-01-01T00:00:00Z", []],
      ["after=2990-01-01T00:00:00%2B01:00", []],
      [`meta=${encodeURIComponent('{"at":"3"}')}`, [3]],
      [`meta=${encodeURIComponent('{"at":"3","all":"no"}')}`, []],
      ["limit=2", [4, 3]],
    ] as const) {
      assert.deepEqual(await found(query), expected, query);
    }
    assert.equal((await host.list("?limit=2")).count, 5);
  });

  test("each page continues before the time of the last pin on the previous page", async () => {
    const cid = await addUnpinned(host, "many times\n");
    const made = await Promise.all(Array.from({ length: 25 }, (_, at) => host.pin({ cid, name: `n${at}` })));
    assert.equal(new Set(made.map(({ created }) => created)).size, 25);
    await pinned(25);
    const names: string[] = [];
    for (let query = "", left = 25; left > 0; ) {
      const { count, results } = await host.list(query);
      assert.equal(count, left);
      names.push(...results.map(({ pin }) => pin.name as string));
      left -= results.length;
      query = `?before=${results.at(-1)?.created}`;
    }
    assert.deepEqual(names.sort(), made.map(({ pin }) => pin.name as string).sort());
  });

  test("users only see their own pins, and content stays pinned until all of them have removed it", async () => {
    const cid = await addUnpinned(host, "of two\n");
    const annas = await host.pin({ cid });
    const bens = await host.pin({ cid }, "token-of-ben");
    await pinned(1);
    await untilRight(
      () => host.list("", "token-of-ben"),
      ({ count }) => count === 1,
    );
    const missing = failure("NOT_FOUND", `There is no pin request ${bens.requestid}`);
    for (const method of ["GET", "DELETE"]) {
      const { status, body } = await host.ask(method, `/pins/${bens.requestid}`);
      assert.deepEqual([status, body], [404, missing]);
    }
    assert.equal((await host.ask("POST", `/pins/${bens.requestid}`, { cid })).status, 404);
    const removed = await host.ask("DELETE", `/pins/${annas.requestid}`);
    assert.deepEqual([removed.status, removed.body], [202, undefined]);
    assert.equal((await host.list()).count, 0);
    assert.ok((await pinsOf(host)).includes(cid));
    await host.ask("DELETE", `/pins/${bens.requestid}`, undefined, "token-of-ben");
    assert.ok(!(await gone(cid)).includes(cid));
  });

  test("a pin that the node already had stays when the request is removed", async () => {
    const cid = await addUnpinned(host, "the node's own\n");
    await host.call(`pin/add?arg=${cid}`);
    const { requestid } = await host.pin({ cid });
    await host.until(requestid, "pinned");
    await host.ask("DELETE", `/pins/${requestid}`);
    // Removals run in the background, in order: once a later one is done, the earlier one is done
    // as well.
    const other = await addUnpinned(host, "not the node's own\n");
    const later = await host.pin({ cid: other });
    await host.until(later.requestid, "pinned");
    await host.ask("DELETE", `/pins/${later.requestid}`);
    assert.ok(!(await gone(other)).includes(other));
    assert.ok((await pinsOf(host)).includes(cid));
  });

  test("a pin that the operator also creates stays when the requests for it are removed", async () => {
    const cid = await addUnpinned(host, "of the service, then of the node\n");
    const again = await addUnpinned(host, "unpinned, then pinned by the node\n");
    const requests = [await host.pin({ cid }), await host.pin({ cid: again })];
    await pinned(2);
    await host.call(`pin/rm?arg=${again}`);
    for (const each of [cid, again]) await host.call(`pin/add?arg=${each}`);
    for (const { requestid } of requests) await host.ask("DELETE", `/pins/${requestid}`);
    const other = await addUnpinned(host, "of the service alone\n");
    const later = await host.pin({ cid: other });
    await host.until(later.requestid, "pinned");
    await host.ask("DELETE", `/pins/${later.requestid}`);
    assert.ok(!(await gone(other)).includes(other));
    const pins = await pinsOf(host);
    assert.deepEqual(
      [cid, again].map((each) => pins.includes(each)),
      [true, true],
    );
  });

  test("a pin replaces another one under a new id", async () => {
    const first = await addUnpinned(host, "first\n");
    const second = await addUnpinned(host, "second\n");
    const old = await host.pin({ cid: first, name: "site" });
    await host.until(old.requestid, "pinned");
    const { status, body } = await host.ask("POST", `/pins/${old.requestid}`, { cid: second, name: "site" });
    const next = body as PinStatus;
    assert.deepEqual([status, next.pin], [202, { cid: second, name: "site" }]);
    assert.notEqual(next.requestid, old.requestid);
    assert.equal((await host.ask("GET", `/pins/${old.requestid}`)).status, 404);
    await host.until(next.requestid, "pinned");
    assert.ok(!(await gone(first)).includes(first));
    assert.ok((await pinsOf(host)).includes(second));
    // The request only changes the name of the same content.
    const renamed = (await host.ask("POST", `/pins/${next.requestid}`, { cid: second, name: "other" }))
      .body as PinStatus;
    await host.until(renamed.requestid, "pinned");
    assert.equal((await host.ask("POST", `/pins/${next.requestid}`, { cid: second })).status, 404);
    assert.ok((await pinsOf(host)).includes(second));
    assert.equal((await host.list()).count, 1);
  });

  test("invalid requests are refused with the reason, and change nothing", async () => {
    const cid = await addUnpinned(host, "never asked for\n");
    for (const [body, details] of [
      ["", "The body must be JSON"],
      ["{", "The body must be JSON"],
      ["[]", "The body must be an object"],
      [{ cid, meta: { a: "x".repeat(65_536) } }, "The body must not have more than 65536 characters"],
      [{}, "cid must be a text of at most 512 characters"],
      [{ cid: 3 }, "cid must be a text of at most 512 characters"],
      [{ cid: "b".repeat(513) }, "cid must be a text of at most 512 characters"],
      [{ cid: "nope" }, /^"nope" is not a CID: /],
      [{ cid, name: "n".repeat(256) }, "name must be a text of at most 255 characters"],
      [{ cid, name: null }, "name must be a text of at most 255 characters"],
      [{ cid, origins: "x" }, "origins must be a list of at most 20 multiaddresses"],
      [{ cid, origins: Array.from({ length: 21 }, String) }, "origins must be a list of at most 20 multiaddresses"],
      [{ cid, meta: { a: 1 } }, "meta must be an object of at most 1000 texts"],
    ] as const) {
      const response = await host.ask("POST", "/pins", body);
      const { reason, details: actual } = (response.body as { error: { reason: string; details: string } }).error;
      assert.deepEqual([response.status, reason], [400, "BAD_REQUEST"]);
      if (typeof details === "string") assert.equal(actual, details);
      else assert.match(actual, details);
    }
    for (const query of [
      "limit=0",
      "limit=1001",
      "limit=x",
      "cid=nope",
      `cid=${Array(11).fill(cid).join(",")}`,
      "status=odd",
      "status=",
      "match=odd",
      `name=${"n".repeat(256)}`,
      "before=yesterday",
      "after=2021-13-01T00:00:00Z",
      "meta=3",
      "meta={",
      "meta=%7B%22a%22%3A1%7D",
    ]) {
      const response = await host.ask("GET", `/pins?${query}`);
      assert.deepEqual(
        [response.status, (response.body as ReturnType<typeof failure>).error.reason],
        [400, "BAD_REQUEST"],
      );
    }
    for (const [method, path] of [
      ["GET", "/pins/x"],
      ["GET", `/pins/${"0".repeat(5000)}`],
      ["DELETE", "/pins/"],
      ["POST", "/elsewhere"],
    ] as const) {
      const response = await host.ask(method, path, method === "POST" ? { cid } : undefined);
      assert.deepEqual(
        [response.status, (response.body as ReturnType<typeof failure>).error.reason],
        [404, "NOT_FOUND"],
      );
    }
    assert.equal((await host.list("?status=queued,pinning,pinned,failed")).count, 0);
  });
});

test("content is fetched in the background, a limited number at a time, and also after a restart", {
  timeout: 300_000,
}, async () => {
  const online = { node_offline: false, pinning_parallel: 1 };
  await using dataHost = await startHost({ config: { http_ports: [], https_ports: [] } });
  const data_path = `${dataHost.folder}/service`;
  let host = await startPinning({ ...online, data_path });
  try {
    const first = await host.pin({ cid: unknown(2) });
    const second = await host.pin({ cid: unknown(3), name: "second" });
    assert.equal((await host.until(first.requestid, "pinning")).status, "pinning");
    const { status, delegates } = await host.until(second.requestid, "queued");
    assert.equal(status, "queued");
    const { Addresses } = await host.value<{ Addresses: string[] }>("id");
    assert.deepEqual(delegates, Addresses);
    await host.stop();
    host = await startPinning({ ...online, data_path });
    const states = async () =>
      (await host.list("?status=queued,pinning")).results.map((pin) => [pin.pin.cid, pin.status]);
    const both = [
      [unknown(3), "queued"],
      [unknown(2), "pinning"],
    ];
    assert.deepEqual(await untilRight(states, (found) => found[1]?.[1] === "pinning"), both);
    // Removing the running request makes room for the next one.
    await host.ask("DELETE", `/pins/${first.requestid}`);
    assert.equal((await host.until(second.requestid, "pinning")).status, "pinning");
    assert.deepEqual(await states(), [[unknown(3), "pinning"]]);
    // A request that is replaced while it is fetched is aborted.
    const cid = await addUnpinned(host, "here\n");
    const { body } = await host.ask("POST", `/pins/${second.requestid}`, { cid });
    const replacedId = (await host.until((body as PinStatus).requestid, "pinned")).requestid;
    const aside = await addUnpinned(host, "aside\n");
    const asides = await host.until((await host.pin({ cid: aside })).requestid, "pinned");
    // The pin of a replaced request stays until the last replacement is pinned. Then all replaced
    // pins are released.
    const { body: between } = await host.ask("POST", `/pins/${replacedId}`, { cid: unknown(6) });
    await host.until((between as PinStatus).requestid, "pinning");
    // Pins are released one after the other. If the pin of the replaced request were released, it
    // would be gone before this one.
    await host.ask("DELETE", `/pins/${asides.requestid}`);
    await untilRight(
      () => pinsOf(host),
      (found) => !found.includes(aside),
    );
    assert.ok((await pinsOf(host)).includes(cid));
    const other = await addUnpinned(host, "here, too\n");
    const { body: last } = await host.ask("POST", `/pins/${(between as PinStatus).requestid}`, { cid: other });
    await host.until((last as PinStatus).requestid, "pinned");
    const pins = await untilRight(
      () => pinsOf(host),
      (found) => !found.includes(cid),
    );
    assert.deepEqual([pins.includes(cid), pins.includes(other)], [false, true]);
    assert.equal((await host.list("?status=queued,pinning,pinned,failed")).count, 1);
  } finally {
    await host.stop();
  }
});

test("a pin for which no data arrives fails after the timeout", { timeout: 300_000 }, async () => {
  const host = await startPinning({ node_offline: false, pinning_timeout: "1s" });
  try {
    const { requestid } = await host.pin({ cid: unknown(4) });
    const { status, info } = await host.until(requestid, "failed");
    assert.deepEqual([status, info?.status_details], ["failed", "no data arrived for 1 seconds"]);
  } finally {
    await host.stop();
  }
});

test("a reload continues the running requests", { timeout: 300_000 }, async () => {
  const host = await startPinning({ node_offline: false });
  try {
    const { requestid } = await host.pin({ cid: unknown(5) });
    await host.until(requestid, "pinning");
    await host.host.reload("http_pinning");
    assert.equal((await host.until(requestid, "pinning")).status, "pinning");
    const cid = await addUnpinned(host, "after the reload\n");
    assert.equal((await host.until((await host.pin({ cid })).requestid, "pinned")).status, "pinned");
    await host.host.unload("http_pinning");
    assert.equal((await host.ask("GET", "/pins")).status, 404);
    assert.deepEqual(await pinsOf(host).then((pins) => pins.includes(cid)), true);
  } finally {
    await host.stop();
  }
});

test("invalid tokens prevent the start, and the error does not show them", async () => {
  for (const pinning_tokens of ["text", [3], [""], { "a-secret": { user: 3 } }, { "a-secret": { paths: [] } }]) {
    await assert.rejects(startPinning({ pinning_tokens }), ({ message }: Error) => {
      assert.match(message, /pinning_tokens/);
      return !message.includes("a-secret");
    });
  }
  const open = await startPinning({ pinning_tokens: undefined });
  try {
    assert.match(open.log(), /the option pinning_tokens is not set/);
    assert.equal((await open.ask("GET", "/pins")).status, 401);
  } finally {
    await open.stop();
  }
  const shared = await startPinning({ pinning_tokens: ["one", "other"] });
  try {
    const cid = await addUnpinned(shared, "shared\n");
    await shared.pin({ cid }, "one");
    assert.equal((await shared.list("?status=queued,pinning,pinned", "other")).count, 1);
  } finally {
    await shared.stop();
  }
});

test("the service only needs the node, and works without the RPC", async () => {
  let stored: Promise<unknown> | undefined;
  const keeper = (module: Module) => {
    stored = module.depends<NodeModule>("node").block.put("kept by a module\n", { version: 1, format: "raw" });
  };
  const enabled = ["http", "http_errors", "http_pinning", "keeper"];
  const host = await startPinning({ modules_enabled: enabled }, { modules: { keeper } });
  try {
    const cid = String(await stored);
    const { requestid, pin } = await host.pin({ cid });
    const { status } = await host.until(requestid, "pinned");
    assert.deepEqual([status, pin.cid], ["pinned", cid]);
    assert.equal((await host.call("version")).status, 404);
  } finally {
    await host.stop();
  }
});
