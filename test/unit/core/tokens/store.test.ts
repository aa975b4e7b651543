import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import fs from "node:fs";
import { mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { addToken, removeToken, TokenStore } from "#core/tokens/index.ts";
import type { HttpRequest, MadeToken, NewToken, PresentedToken, TokenNeed, TokenRefusal } from "#core/types.ts";
import type { CountingToken, TokenUse } from "#core/util/token_use.ts";
import { scopes as adminScopes } from "#modules/mod_http_admin/scopes.ts";
import { scopes as rpcScopes } from "#modules/mod_http_api/scopes.ts";
import { scopes as metricsScopes } from "#modules/mod_http_openmetrics/scopes.ts";
import { eventually } from "#test/support/eventually.ts";
import { sentHeaders } from "#test/support/sent_headers.ts";
import { kindsOf } from "#test/support/token_scopes.ts";

const START = Date.UTC(2050, 0, 1, 12);

/** A request with a token, which counts as open until it ends. */
class TestRequest implements TokenUse {
  readonly header: HttpRequest["header"];
  token: CountingToken | undefined = undefined;
  received = 0;
  sent = 0;
  revoked = false;

  constructor(authorization?: string, headers: Record<string, string> = {}) {
    this.header = sentHeaders({ ...headers, authorization }).header;
  }

  bear(token: CountingToken) {
    this.token = token;
    token.begin(this);
  }

  revoke() {
    this.revoked = true;
    this.end();
  }

  end() {
    this.token?.end(this);
  }
}

/** The scopes of these tests are those of bundled modules. */
const kinds = kindsOf(...rpcScopes, ...adminScopes, ...metricsScopes);

async function opened(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), "modhost-tokens-"));
  const path = join(folder, "tokens.json");
  const clock = { now: Date.now() };
  const errors: string[] = [];
  const stores: TokenStore[] = [];
  const open = () => {
    const log = { error: (_format: string, ...values: unknown[]) => errors.push(values.join(" ")) };
    const store = new TokenStore({ kinds, path: () => path, log, now: () => clock.now });
    stores.push(store);
    return store;
  };
  t.after(async () => {
    for (const store of stores) await store.close();
    await rm(folder, { recursive: true, force: true });
  });
  const store = open();
  const make = (wanted: Partial<NewToken> = {}): Promise<MadeToken> =>
    store.create({ name: "ci", scopes: ["*"], ...wanted }, "test");
  return { folder, path, clock, errors, store, open, make };
}

const needed: TokenNeed = { kind: "metrics" };

function identified(
  store: TokenStore,
  secret: string,
  need: TokenNeed = needed,
  request = new TestRequest(`Bearer ${secret}`),
) {
  const found: PresentedToken | TokenRefusal = store.authorize(request as unknown as HttpRequest, need);
  return "status" in found ? found.status : 200;
}

describe("tokens", () => {
  test("are stored as digests, in a file that only its owner can read, and shown once", async (t) => {
    const { store, path, make } = await opened(t);
    const { secret, token } = await make({ name: "deploy", scopes: ["rpc:pin:read", "metrics"] });
    assert.match(secret, /^mht_[a-z0-9]{10}_[A-Za-z0-9]{32}$/);
    const text = await readFile(path, "utf8");
    assert.ok(!text.includes(secret) && !text.includes(secret.slice(-32)));
    assert.ok(text.includes(createHash("sha256").update(secret).digest("hex")));
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    assert.ok(!JSON.stringify(store.list()).includes(secret.slice(-32)));
    assert.deepEqual(
      store.list().map(({ name, scopes }) => [name, scopes]),
      [["deploy", token.scopes]],
    );
    assert.equal(identified(store, secret), 200);
  });

  test("that are forged, cut, in another case or of another token are refused in the same way", async (t) => {
    const { store, make } = await opened(t);
    const { secret } = await make();
    const { secret: other } = await make({ name: "other" });
    const refusals = new Set<string>();
    for (const forged of [
      secret.slice(0, -1),
      `${secret}x`,
      secret.toUpperCase(),
      secret.toLowerCase(),
      `${secret.slice(0, 15)}${other.slice(15)}`,
      `mht_aaaaaaaaaa_${secret.slice(-32)}`,
      "mht_",
      "mht___proto___x",
      `${secret}, Bearer ${secret}`,
      `${secret} `.repeat(2).trim(),
      `x${secret}`,
    ]) {
      const request = new TestRequest(`Bearer ${forged}`);
      const found = store.authorize(request as unknown as HttpRequest, needed) as TokenRefusal;
      assert.equal(found.status, 401, forged);
      refusals.add(`${found.message} ${found.headers.www_authenticate}`);
      assert.equal(request.token, undefined);
    }
    assert.equal(refusals.size, 1, "a refusal does not show how near a guess was");
    assert.equal(identified(store, secret), 200);
    assert.equal(identified(store, secret, needed, new TestRequest(`bEaReR ${secret}`)), 200);
  });

  test("are requested by a 401, and accepted as basic credentials where that is allowed", async (t) => {
    const { store, make } = await opened(t);
    const { secret } = await make();
    const found = store.authorize(new TestRequest() as unknown as HttpRequest, needed) as TokenRefusal;
    assert.deepEqual([found.status, found.headers.www_authenticate], [401, 'Bearer realm="modhost"']);
    const basic = `Basic ${Buffer.from(`any:${secret}`).toString("base64")}`;
    assert.equal(identified(store, "", needed, new TestRequest(basic)), 401);
    const request = new TestRequest(basic) as unknown as HttpRequest;
    assert.ok("name" in store.authorize(request, needed, { basic: true }));
    assert.equal(store.identify(new TestRequest("Bearer something-else") as unknown as HttpRequest), undefined);
  });

  test("expire with a reason, and stay expired if the clock is set back", async (t) => {
    const { store, clock, make } = await opened(t);
    const { secret, token } = await make({ expires: "1h" });
    assert.equal(Date.parse(token.expires as string) > Date.now(), true);
    assert.equal(identified(store, secret), 200);
    clock.now += 3_700_000;
    const late = store.authorize(new TestRequest(`Bearer ${secret}`) as unknown as HttpRequest, needed) as TokenRefusal;
    assert.equal(late.status, 401);
    assert.match(late.message, /has expired/);
    assert.equal(store.list()[0]?.is_expired, true);
    clock.now -= 24 * 3_600_000;
    assert.equal(identified(store, secret), 401, "setting the clock back revives no token");
  });

  test("that are revoked are refused at once, whoever revoked them, and their open requests are cut", async (t) => {
    const { store, path, make } = await opened(t);
    const { secret } = await make();
    const open = new TestRequest(`Bearer ${secret}`);
    assert.equal(identified(store, secret, needed, open), 200);
    await store.revoke("ci");
    assert.deepEqual([identified(store, secret), open.revoked], [401, true]);
    const { secret: second, token } = await make();
    assert.equal(identified(store, second), 200);
    await removeToken(path, token.id);
    store.list();
    assert.equal(identified(store, second), 401, "by another process");
    const { secret: third } = await make();
    await store.revoke(third);
    assert.equal(identified(store, third), 401, "by the secret itself, which leaked");
    await assert.rejects(store.revoke(third), (error: Error) => !error.message.includes(third.slice(-32)));
  });

  test("that several processes create and revoke at the same time are all stored", async (t) => {
    const { path, store } = await opened(t);
    const names = Array.from({ length: 12 }, (_, at) => `token${at}`);
    await Promise.all(names.map((name) => addToken(path, { name, scopes: ["metrics"] }, "test")));
    await Promise.all(names.slice(0, 4).map((name) => removeToken(path, name)));
    assert.deepEqual(
      store
        .list()
        .map(({ name }) => name)
        .sort(),
      names.slice(4).sort(),
    );
    await assert.rejects(addToken(path, { name: "token5", scopes: ["metrics"] }, "test"), /There is a token token5/);
  });

  test("can be changed soon after a killed process left its lock", async (t) => {
    const { path, make } = await opened(t);
    await writeFile(`${path}.lock`, "");
    await utimes(`${path}.lock`, 1, 1);
    await make();
  });

  test("can be changed by one of two processes that find an abandoned lock, while the other waits", async (t) => {
    const { path, make } = await opened(t);
    const lock = `${path}.lock`;
    await writeFile(lock, "");
    await utimes(lock, 1, 1);
    const find = fs.statSync;
    const mocked = t.mock.method(fs, "statSync", (...args: Parameters<typeof find>) => {
      const found = find(...args);
      if (args[0] !== lock) return found;
      // Another process is faster, and has the lock now.
      mocked.mock.restore();
      syncBuiltinESMExports();
      fs.rmSync(lock);
      fs.writeFileSync(lock, "other", { flag: "wx" });
      return found;
    });
    syncBuiltinESMExports();
    const making = make();
    await setTimeout(50);
    assert.equal(fs.readFileSync(lock, "utf8"), "other");
    assert.ok(!fs.existsSync(path), "nothing is written while the lock exists");
    fs.rmSync(lock);
    await making;
    assert.deepEqual(await readdir(dirname(path)), ["tokens.json"]);
  });

  test("are counted by name and by the reason of refusals, and so are unknown ones", async (t) => {
    const { store, make, clock } = await opened(t);
    const { secret } = await make({ scopes: ["metrics"], rate: "1/h", burst: 2, expires: "1h" });
    assert.equal(identified(store, secret), 200);
    assert.equal(identified(store, secret, { kind: "admin", access: "read" }), 403);
    assert.equal(identified(store, secret), 429);
    clock.now += 2 * 3_600_000;
    assert.equal(identified(store, secret), 401);
    assert.equal(identified(store, `${secret}x`), 401);
    assert.equal(identified(store, "else"), 401);
    const bytes = { received: 0, sent: 0 };
    assert.deepEqual(store.metrics(), [
      { name: "ci", requests: 2, ...bytes, refused: { scope: 1, rate: 1, expired: 1 } },
      { name: undefined, requests: 0, ...bytes, refused: { unknown: 2 } },
    ]);
  });

  test("are all refused if the file is damaged, which is reported and does not overwrite it", async (t) => {
    const { store, path, make, errors } = await opened(t);
    const { secret } = await make();
    await writeFile(path, `{"tokens": "${secret}"`);
    assert.throws(() => store.list(), /cannot be read/);
    await assert.rejects(make({ name: "other" }), /cannot be read/);
    assert.match(await readFile(path, "utf8"), /^\{"tokens"/);
    assert.equal(identified(store, secret), 401);
    assert.ok(!errors.join().includes(secret));
  });

  test("cannot be created if the file cannot be written, and the error says why", async (t) => {
    const { path, make } = await opened(t);
    // A folder at the path of the new file, instead of a full disk.
    fs.mkdirSync(`${path}.${process.pid}.new`);
    await assert.rejects(make({ name: "other" }), { code: "TOKENS_UNWRITABLE", message: /cannot be written: / });
  });

  test("are read again if the file was damaged or corrected, whatever its time says", async (t) => {
    const { store, path, make } = await opened(t);
    const { secret } = await make();
    const { atime, mtime } = fs.statSync(path);
    const text = await readFile(path, "utf8");
    const rewrite = (content: string) => {
      fs.writeFileSync(path, content);
      fs.utimesSync(path, atime, mtime);
    };
    rewrite(text.replace("{", "x"));
    await eventually("no token is accepted", () => identified(store, secret) === 401);
    rewrite(text);
    await eventually("it is read again", () => identified(store, secret) === 200);
  });

  test("have a limited rate, and a refusal says when to try again", async (t) => {
    const { store, clock, make } = await opened(t);
    const { secret } = await make({ rate: "30/m", burst: 3 });
    assert.deepEqual(
      [1, 2, 3, 4].map(() => identified(store, secret)),
      [200, 200, 200, 429],
    );
    const found = store.authorize(
      new TestRequest(`Bearer ${secret}`) as unknown as HttpRequest,
      needed,
    ) as TokenRefusal;
    assert.deepEqual([found.status, found.headers.retry_after], [429, "2"]);
    clock.now += 2000;
    assert.deepEqual([identified(store, secret), identified(store, secret)], [200, 429]);
  });

  test("have a limit of bytes, per day or in total, also during a response", async (t) => {
    const { store, clock, make } = await opened(t);
    clock.now = START;
    const { secret } = await make({ bytes_out: "1kB/day", bytes_in: "10kB" });
    const first = new TestRequest(`Bearer ${secret}`);
    assert.equal(identified(store, secret, needed, first), 200);
    first.sent = 1200;
    const found = store.authorize(
      new TestRequest(`Bearer ${secret}`) as unknown as HttpRequest,
      needed,
    ) as TokenRefusal;
    assert.deepEqual([found.status, found.headers.retry_after], [429, String(12 * 3600)]);
    assert.match(found.message, /bytes_out.*1kB\/day/);
    first.end();
    clock.now += 12 * 3_600_000;
    const large = new TestRequest(`Bearer ${secret}`, { "content-length": "10001" });
    assert.equal(identified(store, secret, needed, large), 403);
    const disguised = new TestRequest(`Bearer ${secret}`, { "content-length": "10001", content_length: "1" });
    assert.equal(identified(store, secret, needed, disguised), 403, "another spelling of the header announces nothing");
    const whole = new TestRequest(`Bearer ${secret}`, { "content-length": "10000" });
    assert.equal(identified(store, secret, needed, whole), 200);
    whole.received = 10_000;
    whole.end();
    assert.equal(identified(store, secret), 403, "a total quota is never reset");
  });

  test("keep their counts across a restart", async (t) => {
    const { store, open, make } = await opened(t);
    const { secret } = await make({ bytes_in: "10kB" });
    const request = new TestRequest(`Bearer ${secret}`);
    assert.equal(identified(store, secret, needed, request), 200);
    request.received = 9000;
    request.sent = 7;
    request.end();
    await store.close();
    const again = open();
    const [{ requests, received, sent, last_used } = assert.fail()] = again.list();
    assert.deepEqual([requests, received, sent], [1, 9000, 7]);
    assert.match(last_used as string, /:00\.000Z$/);
    assert.equal(
      identified(again, secret, needed, new TestRequest(`Bearer ${secret}`, { "content-length": "2000" })),
      403,
    );
  });

  for (const [field, wrong] of [
    ["name", { name: "a b" }],
    ["name", { name: "" }],
    ["name", { name: "mht_x" }],
    ["scopes", { scopes: [] }],
    ["scopes", { scopes: ["rpc"] }],
    ["scopes", { scopes: ["rpc:pin:delete"] }],
    ["scopes", { scopes: ["mfs:team"] }],
    ["scopes", { scopes: ["mfs:/a/../b"] }],
    ["scopes", { scopes: ["mfs:/ipfs/x"] }],
    ["scopes", { scopes: ["admin:write"] }],
    ["expires", { expires: "tomorrow" }],
    ["expires", { expires: "2001-01-01" }],
    ["rate", { rate: "10" }],
    ["rate", { rate: "0/s" }],
    ["burst", { burst: 3 }],
    ["burst", { rate: "1/s", burst: 0 }],
    ["bytes_in", { bytes_in: "much" }],
  ] as const) {
    test(`with a wrong ${field} are refused with what is allowed: ${JSON.stringify(wrong)}`, async (t) => {
      const { make } = await opened(t);
      await assert.rejects(make(wrong), new RegExp(`The ${field} of a token cannot be .*: it must be `));
    });
  }
});

test("are counted for several processes together: each adds what the others have written", async (t) => {
  const { clock, store, open, make } = await opened(t);
  const { secret } = await make({ bytes_in: "100" });
  const use = (by: TokenStore, received: number) => {
    const request = new TestRequest(`Bearer ${secret}`);
    const response = by.identify(request as unknown as HttpRequest);
    request.received = received;
    request.end();
    return response !== undefined && "status" in response ? response.status : 200;
  };
  const first = open();
  const second = open();
  await store.close();
  assert.deepEqual([use(first, 30), use(second, 40)], [200, 200]);
  await first.close();
  await second.close();
  assert.equal(use(second, 10), 200);
  await second.close();
  assert.equal(use(first, 0), 200);
  await first.close();
  const counted = (by: TokenStore) => by.list().map(({ requests, received }) => [requests, received]);
  assert.deepEqual([counted(first), counted(open())], [[[4, 80]], [[4, 80]]]);
  clock.now += 1000;
  assert.equal(use(second, 20), 200);
  await second.close();
  assert.equal(use(second, 1), 403);
  // Metrics of processes are summed where they are shown.
  assert.deepEqual(
    [first, second].map((by) => by.metrics()[0]?.received),
    [30, 70],
  );
});
