/** Tests the policy that keeps the MFS root pinned at services. */
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { CID } from "multiformats/cid";
import { parseCid } from "#node/formats/cid/text.ts";
import { MfsPolicy } from "#node/network/pinning_services/mfs_policy.ts";
import { RemotePins } from "#node/network/pinning_services/remote_pins.ts";
import { type KnownService, knownServices } from "#node/network/pinning_services/services.ts";
import { NodeLog } from "#node/util/log.ts";
import { type FakeService, pinStatus, startService } from "#test/unit/modules/mod_http_api/commands/pinning_service.ts";

const first = parseCid("QmUo7E7B57p4NYsh7rbzFuHpWqWvCknfbzyzNAu38zRHo8");
const second = parseCid("QmZULkCELmmk5XNfCgTnCyFgAVxBRBXyDHGGMVoLFLiXEN");
const { signal } = new AbortController();

let service: FakeService;
let services: Record<string, KnownService>;
let root: CID;
let logged: string[];
let policy: MfsPolicy;
/** Pins of the service; posted pins are added at the front. */
let stored: ReturnType<typeof pinStatus>[];

before(async () => {
  service = await startService();
});
after(() => service[Symbol.asyncDispose]());
beforeEach(() => {
  services = { s: known() };
  root = first;
  logged = [];
  stored = [];
  const config = { value: () => services, update: async () => undefined } as never;
  const log = new NodeLog();
  log.listen(({ system, message }) => logged.push(`${system}: ${message}`));
  policy = new MfsPolicy({
    pins: new RemotePins({ config, log, swarm: async () => undefined }),
    services: () => knownServices(config),
    root: async () => root,
    defaultName: "policy/me/mfs",
    log,
  });
  service.respondWith(({ method, target, body }) => {
    if (method === "GET") return { body: { count: stored.length, results: stored } };
    stored = stored.filter(({ requestid }) => target !== `/pins/${requestid}`);
    const pin = pinStatus({ requestid: `r${stored.length}${target.length}`, status: "queued", pin: body });
    stored = [pin, ...stored];
    return { status: 202, body: pin };
  });
});

const known = (over: Partial<KnownService["Policies"]["MFS"]> = {}): KnownService => ({
  API: { Endpoint: service.endpoint, Key: "secret" },
  Policies: { MFS: { Enable: true, PinName: "", RepinInterval: "", ...over } },
});

const sent = () => service.requests.filter(({ method }) => method !== "GET");

test("the root is pinned once, under the default name", async () => {
  await policy.round(signal);
  await policy.round(signal);
  assert.deepEqual(
    service.requests.map(({ method, target }) => `${method} ${target}`),
    ["GET /pins?limit=10&name=policy%2Fme%2Fmfs&status=queued%2Cpinning%2Cpinned%2Cfailed", "POST /pins"],
  );
  assert.deepEqual(sent()[0]?.body, { cid: String(first), name: "policy/me/mfs" });
  assert.deepEqual(logged, []);
});

test("a changed root replaces the last one after the interval", async () => {
  services = { s: known({ RepinInterval: "1h", PinName: "mine" }) };
  await policy.round(signal);
  root = second;
  await policy.round(signal);
  assert.equal(sent().length, 1);
  // The interval of an earlier policy does not delay a new one.
  services = { s: known({ RepinInterval: "0s", PinName: "mine" }) };
  await policy.round(signal);
  assert.equal(sent().length, 2);
  assert.match(sent()[1]?.target ?? "", /^\/pins\/r\d+$/);
  assert.deepEqual(sent()[1]?.body, { cid: String(second), name: "mine" });
});

test("a root that a service has already is not pinned again, unless its pin has failed", async () => {
  const pin = { cid: String(first), name: "policy/me/mfs" };
  stored = [pinStatus({ pin, status: "pinning" })];
  await policy.round(signal);
  assert.deepEqual(sent(), []);
  services = { other: known() };
  stored = [pinStatus({ pin, status: "failed" })];
  await policy.round(signal);
  assert.equal(sent()[0]?.target, "/pins/r1");
});

test("services without the policy are not asked, and one that fails does not affect the others", async () => {
  const closed = await startService();
  await closed[Symbol.asyncDispose]();
  const { Policies } = known();
  services = {
    dead: { API: { Endpoint: closed.endpoint, Key: "secret" }, Policies },
    odd: known({ RepinInterval: "often" }),
    off: known({ Enable: false }),
    s: known(),
  };
  await policy.round(signal);
  assert.equal(sent().length, 1);
  assert.equal(logged.length, 2);
  assert.match(logged.join("\n"), /remotepinning\/mfs: cannot pin Qm\w+ at "dead": empty response from/);
  assert.match(logged.join("\n"), /cannot pin Qm\w+ at "odd": time: invalid duration "often"/);
  assert.ok(!logged.join("\n").includes("secret"));
  // The failed pin is tried again.
  services = { s: known() };
  service.respondWith(() => ({ status: 500, body: {} }));
  root = second;
  services = { s: known({ PinName: "new" }) };
  await policy.round(signal);
  await policy.round(signal);
  assert.equal(service.requests.length, 2);
});

test("a round runs every half minute until the policy is stopped", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  let looks = 0;
  const looking = new MfsPolicy({
    pins: new RemotePins({ config: {} as never, log: new NodeLog(), swarm: async () => undefined }),
    services: () => {
      looks += 1;
      return [];
    },
    root: async () => root,
    defaultName: "name",
    log: new NodeLog(),
  });
  looking.start();
  for (const expected of [1, 2]) {
    context.mock.timers.tick(29_999);
    assert.equal(looks, expected - 1);
    context.mock.timers.tick(1);
    assert.equal(looks, expected);
    await new Promise(setImmediate);
  }
  await looking.stop();
  context.mock.timers.tick(60_000);
  assert.equal(looks, 2);
});
