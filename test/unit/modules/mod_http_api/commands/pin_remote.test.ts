import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { create } from "kubo-rpc-client";
import { CID } from "multiformats/cid";
import { eventually } from "#test/support/eventually.ts";
import { defaultCid as cid, type FakeService, pinStatus, startService } from "./pinning_service.ts";
import { type RpcHost, startRpc } from "./support.ts";

let host: RpcHost;
let online: RpcHost;
let service: FakeService;
/** No server listens there. */
let dead: string;

before(async () => {
  [host, online, service] = await Promise.all([startRpc(), startRpc({ node_offline: false }), startService()]);
  const closed = await startService();
  await closed[Symbol.asyncDispose]();
  dead = closed.endpoint;
  for (const each of [host, online]) {
    assert.equal((await each.call("add", { r: "pinned far away\n" })).status, 200);
    await each.call(`pin/remote/service/add?arg=s&arg=${service.endpoint}&arg=secret`);
  }
});
after(async () => {
  await Promise.all([host.stop(), online.stop()]);
  await service[Symbol.asyncDispose]();
});
beforeEach(() => service.respondWith(() => ({ status: 404, body: { error: { reason: "NOT_FOUND" } } })));

const ls = (query = "") => host.call(`pin/remote/ls?service=s${query}`);
const lsFailure = async () => (await host.failure("pin/remote/ls?service=s"))[1];
const requestLines = () => service.requests.map(({ method, target }) => `${method} ${target}`);

test("a service is stored in the configuration, and only the service receives its key", async () => {
  const add = (name: string, endpoint: string) =>
    host.failure(`pin/remote/service/add?arg=${name}&arg=${encodeURIComponent(endpoint)}&arg=very-secret`);
  for (const [name, endpoint, stored] of [
    ["plain", "https://1.example.com", "https://1.example.com"],
    ["long", "https://5.example.com/./some//nonsense/../path/../path/", "https://5.example.com/some/path"],
    ["case", "HTTP://192.168.0.5:45000/A b#c/", "http://192.168.0.5:45000/A%20b%23c"],
  ] as const) {
    assert.deepEqual(await add(name, endpoint), [200, ""]);
    assert.equal((await host.value(`config?arg=Pinning.RemoteServices.${name}.API.Endpoint`)).Value, stored);
  }
  const refused: readonly (readonly [endpoint: string, text: string])[] = [
    ["https://4.example.com/pins", "service endpoint should be provided without the /pins suffix"],
    ["https://4.example.com/pins/", "service endpoint should be provided without the /pins suffix"],
    ["http://a/api?q=1", "service endpoint should be provided without any query parameters"],
    ...["foo://4.example.com/pins", "", "//h/x", "http://h:port/", "http://h/%zz"].map(
      (endpoint) => [endpoint, "service endpoint must be a valid HTTP URL"] as const,
    ),
  ];
  for (const [endpoint, text] of refused) assert.deepEqual(await add("other", endpoint), [500, text]);
  assert.deepEqual(await add("plain", "https://1.example.com"), [500, "service already present"]);
  const shown = await Promise.all(["config/show", "diag/cmds", "pin/remote/service/ls"].map((path) => host.call(path)));
  assert.ok(shown.every(({ text }) => !text.includes("secret")));
  assert.ok(!host.log().includes("secret"));
  const names = async () =>
    (await host.value<{ RemoteServices: { Service: string }[] }>("pin/remote/service/ls")).RemoteServices.map(
      ({ Service }) => Service,
    );
  assert.deepEqual(await names(), ["case", "long", "plain", "s"]);
  for (const name of ["case", "long", "plain", "plain"]) await host.call(`pin/remote/service/rm?arg=${name}`);
  assert.deepEqual(await names(), ["s"]);
  service.respondWith(() => ({ body: { count: 0, results: [] } }));
  await ls();
  assert.equal(service.requests[0]?.authorization, "Bearer secret");
});

test("a key that no header can carry does not appear in errors", async () => {
  await host.call(`pin/remote/service/add?arg=odd&arg=${service.endpoint}&arg=line%0Abreak`);
  const [status, text] = await host.failure("pin/remote/ls?service=odd");
  assert.equal(status, 500);
  assert.match(String(text), /^empty response from remote pinning service: Get /);
  assert.ok(!String(text).includes("break"));
  await host.call("pin/remote/service/rm?arg=odd");
});

test("a password in the URL of a service does not appear in errors", async () => {
  await host.call(`pin/remote/service/add?arg=user&arg=${dead.replace("//", "//anna:hidden@")}&arg=k`);
  const [, text] = await host.failure("pin/remote/ls?service=user");
  const shown = `${dead.replace("//", "//anna:***@")}/pins?limit=10&status=pinned`;
  assert.match(
    String(text),
    new RegExp(`^empty response from remote pinning service: Get "${RegExp.escape(shown)}": `),
  );
  await host.call("pin/remote/service/rm?arg=user");
});

test("services are queried for their number of pins", async () => {
  await host.call(`pin/remote/service/add?arg=dead&arg=${dead}&arg=k`);
  service.respondWith(({ target }) => ({ body: { count: target.includes("queued") ? 3 : 1, results: [pinStatus()] } }));
  const Queued = 3;
  const Pinning = 1;
  const Pinned = 1;
  const Failed = 1;
  assert.deepEqual(await host.value("pin/remote/service/ls?stat=true"), {
    RemoteServices: [
      { Service: "dead", ApiEndpoint: dead, Stat: { Status: "invalid" } },
      {
        Service: "s",
        ApiEndpoint: service.endpoint,
        Stat: { Status: "valid", PinCount: { Queued, Pinning, Pinned, Failed } },
      },
    ],
  });
  assert.deepEqual(
    requestLines().sort(),
    ["failed", "pinned", "pinning", "queued"].map((word) => `GET /pins?limit=1&status=${word}`),
  );
  const { text } = await host.call("pin/remote/service/ls?stat=true&encoding=text");
  const width = service.endpoint.length + 1;
  assert.equal(text, `dead ${dead.padEnd(width)}invalid\ns    ${service.endpoint} 3/1/1/1\n`);
  await host.call("pin/remote/service/rm?arg=dead");
});

test("pins are listed page by page, with the filters of the call", async () => {
  const older = pinStatus({ requestid: "r2", created: "2020-01-01T00:00:00Z", status: "queued" });
  service.respondWith(({ target }) =>
    target.includes("before")
      ? { body: { count: 1, results: [older] } }
      : { body: { count: 2, results: [pinStatus()] } },
  );
  const v1 = "zb2rhhFAEMepUBbGyP1k8tGfz7BSciKXP6GHuUeUsJBaK6cqG";
  const { lines } = await ls(`&cid=${cid}&cid=${v1}&name=a%2Cb&status=pinned&status=queued`);
  assert.deepEqual(lines, [
    { Status: "pinned", Cid: cid, Name: "x" },
    { Status: "queued", Cid: cid, Name: "x" },
  ]);
  const cids = `cid=${cid}%2Cbafkreie5qrjvaw64n4tjm6hbnm7fnqvcssfed4whsjqxzslbd3jwhsk3mm`;
  assert.deepEqual(requestLines(), [
    `GET /pins?${cids}&limit=10&name=a%2Cb&status=pinned%2Cqueued`,
    `GET /pins?before=2021-06-23T10%3A11%3A12Z&${cids}&limit=10&name=a%2Cb&status=pinned%2Cqueued`,
  ]);
  assert.equal((await ls("&encoding=text")).text, `${cid}\tpinned\tx\n${cid}\tqueued\tx\n`);
});

test("pins of one second that span two pages are all listed", async () => {
  const made = (at: number) => pinStatus({ requestid: `r${at}`, created: `2021-06-23T10:11:12.${100 + at}Z` });
  const all = Array.from({ length: 25 }, (_, at) => made(25 - at));
  service.respondWith(({ target }) => {
    const before = new URL(target, "http://x").searchParams.get("before");
    const found = all.filter(({ created }) => before === null || Date.parse(created) < Date.parse(before));
    return { body: { count: found.length, results: found.slice(0, 10) } };
  });
  assert.equal((await ls()).lines.length, 25);
});

test("a service that repeats its pages, or returns empty ones, ends the list", async () => {
  service.respondWith(() => ({ body: { count: 2, results: [] } }));
  assert.deepEqual((await ls()).lines, []);
  service.respondWith(() => ({ body: { count: 2, results: [pinStatus()] } }));
  const { lines } = await ls();
  assert.equal(lines.length, 1);
  assert.ok(requestLines().length <= 3);
});

test("errors of a service are reported", async () => {
  const failures: readonly (readonly [reply: Parameters<FakeService["respondWith"]>[0], text: string])[] = [
    [
      () => ({ status: 401, body: { error: { reason: "UNAUTHORIZED", details: "Access token is missing" } } }),
      'reason: "UNAUTHORIZED", details: "Access token is missing": 401 Unauthorized',
    ],
    [() => ({ status: 500, body: { x: 1 } }), 'reason: "", details: "": 500 Internal Server Error'],
    [
      () => ({ status: 404, type: "text/html", body: "<p>" }),
      "remote pinning service returned http error 404: undefined response type",
    ],
    [
      () => ({ type: "text/html", body: "<p>" }),
      "remote pinning service returned http error 200: undefined response type",
    ],
    [
      () => ({ type: "application/problem+json", body: "{nope" }),
      "remote pinning service returned http error 200: invalid character 'n' looking for beginning of object key string",
    ],
    [
      () => ({ body: { count: 1, results: [pinStatus({ status: "weird" })] } }),
      "remote pinning service returned http error 200: weird is not a valid Status",
    ],
    [
      () => "drop",
      `empty response from remote pinning service: Get "${service.endpoint}/pins?limit=10&status=pinned": EOF`,
    ],
  ];
  for (const [reply, text] of failures) {
    service.respondWith(reply);
    assert.equal(await lsFailure(), text);
  }
  await host.call(`pin/remote/service/add?arg=dead&arg=${dead}&arg=k`);
  const refused = `"${dead}/pins?limit=10&status=pinned": dial tcp ${new URL(dead).host}: connect: connection refused`;
  assert.deepEqual(await host.failure("pin/remote/ls?service=dead"), [
    500,
    `empty response from remote pinning service: Get ${refused}`,
  ]);
  await host.call("pin/remote/service/rm?arg=dead");
  for (const body of [[], { results: 3 }, { results: [3] }, { results: [{ pin: 3 }] }, { count: -1 }]) {
    service.respondWith(() => ({ body }));
    assert.match(String(await lsFailure()), /^remote pinning service returned http error 200: /);
  }
});

test("invalid calls are refused before the service is queried", async () => {
  const long = "n".repeat(256);
  for (const [call, text] of [
    ["ls", "a service name must be passed"],
    ["ls?service=", "remote pinning service name not specified"],
    ["ls?service=q", "service not known"],
    ["ls?service=constructor", "service not known"],
    ["rm?service=q", "service not known"],
    ["add?arg=bad&service=q", "service not known"],
    ["add?arg=bad&service=s", 'invalid path "bad": expected 1 as the cid version number, got: 0'],
    [`add?arg=${cid}&service=s&name=${long}`, "name cannot be longer than 255"],
    [`ls?service=s&name=${long}`, "name cannot be longer than 255"],
    ["ls?service=s&status=odd", 'status "odd" is not valid'],
    ["rm?service=s&status=pinned,queued", 'status "pinned,queued" is not valid'],
    ["ls?service=s&cid=", 'CID "" cannot be parsed: cid too short'],
    ["rm?service=s&cid=bad", 'CID "bad" cannot be parsed: expected 1 as the cid version number, got: 0'],
  ] as const) {
    assert.deepEqual(await host.failure(`pin/remote/${call}`), [500, text], call);
  }
  assert.deepEqual(service.requests, []);
});

test("a pin is followed until the service has it", async () => {
  const words = ["queued", "pinning", "pinned"];
  service.respondWith(({ method, body }) => {
    if (method === "POST") return { status: 202, body: pinStatus({ status: "queued", pin: body }) };
    return { body: pinStatus({ status: words.shift() }) };
  });
  const { lines } = await host.call(`pin/remote/add?arg=${cid}&service=s&name=x`);
  assert.deepEqual(lines, [{ Status: "pinned", Cid: cid, Name: "x" }]);
  assert.deepEqual(requestLines(), ["POST /pins", ...Array.from({ length: 3 }, () => "GET /pins/r1")]);
  // Without a network, there are no addresses to fetch it from.
  assert.deepEqual(service.requests[0]?.body, { cid, name: "x" });
});

test("in the background, only the request is awaited", async () => {
  service.respondWith(({ body }) => ({ status: 202, body: pinStatus({ status: "queued", pin: body }) }));
  const { text } = await host.call(
    `pin/remote/add?arg=/ipfs/${cid}&service=s&background=true&name=a%0Ab&encoding=text`,
  );
  assert.equal(text, `CID:  ${cid}\nName: a\nb\nStatus: queued\n`);
  assert.deepEqual(requestLines(), ["POST /pins"]);
});

test("a pin that fails at the service is reported", async () => {
  const add = async () => (await host.failure(`pin/remote/add?arg=${cid}&service=s`))[1];
  const then = (status: number, body: unknown) =>
    service.respondWith(({ method }) => (method === "POST" ? { status: 202, body: pinStatus() } : { status, body }));
  then(200, pinStatus({ status: "failed" }));
  assert.equal(await add(), 'remote service failed to pin requestid="r1"');
  then(404, { error: { reason: "NOT_FOUND", details: "gone" } });
  const cause = 'reason: "NOT_FOUND", details: "gone": 404 Not Found';
  assert.equal(await add(), `failed to check pin status for requestid="r1" due to error: ${cause}`);
  then(200, pinStatus({ requestid: "r2" }));
  assert.equal(
    await add(),
    'failed to check pin status for requestid="r1", remote service sent unexpected requestid="r2"',
  );
});

test("a disconnect or a timeout ends the wait", { timeout: 300_000 }, async () => {
  service.respondWith(() => "wait");
  const leaving = new AbortController();
  const url = `http://127.0.0.1:${host.http}/api/v0/pin/remote/ls?service=s`;
  const call = fetch(url, { method: "POST", signal: leaving.signal });
  await eventually("the service gets a request", () => service.requests.length > 0);
  leaving.abort();
  await assert.rejects(call);
  await service.left();
  service.respondWith(({ method }) => ({
    status: method === "POST" ? 202 : 200,
    body: pinStatus({ status: "pinning" }),
  }));
  const late = await host.failure(`pin/remote/add?arg=${cid}&service=s&timeout=700ms`);
  assert.deepEqual(late, [500, "context deadline exceeded"]);
});

test("pins are removed one at a time, several only by force", async () => {
  const all = [pinStatus(), pinStatus({ requestid: "r2", created: "2020-01-01T00:00:00Z" })];
  const one = [pinStatus()];
  const holds = (pins: readonly unknown[], removal = 202) =>
    service.respondWith(({ method }) =>
      method === "DELETE"
        ? { status: removal, body: { error: { reason: "NO", details: "not today" } } }
        : { body: { count: pins.length, results: pins } },
    );
  const rm = (query = "") => host.failure(`pin/remote/rm?service=s${query}`);
  holds(all);
  const many = "multiple remote pins are matching this query, add --force to confirm the bulk removal";
  assert.deepEqual(await rm(), [500, many]);
  assert.deepEqual(await rm("&force=true"), [200, ""]);
  assert.deepEqual(requestLines().slice(-2), ["DELETE /pins/r1", "DELETE /pins/r2"]);
  holds(one);
  assert.deepEqual(await rm("&name=x"), [200, ""]);
  assert.deepEqual(requestLines(), ["GET /pins?limit=10&name=x&status=pinned", "DELETE /pins/r1"]);
  holds([]);
  assert.deepEqual(await rm(), [200, ""]);
  holds(one, 500);
  const failed = 'reason: "NO", details: "not today": 500 Internal Server Error';
  assert.deepEqual(await rm(), [500, `removing pin identified by requestid="r1" failed: ${failed}`]);
  service.respondWith(() => ({ status: 401, body: { error: { reason: "UNAUTHORIZED" } } }));
  const unauthorized = 'reason: "UNAUTHORIZED", details: "": 401 Unauthorized';
  assert.deepEqual(await rm(), [500, `error while listing remote pins: ${unauthorized}`]);
});

test("requests include the node's addresses, and delegates are connected to", { timeout: 300_000 }, async () => {
  const other = await startRpc({ node_offline: false });
  try {
    const { ID, Addresses } = await other.value<{ ID: string; Addresses: string[] }>("id");
    const own = (await online.value<{ Addresses: string[] }>("id")).Addresses;
    const add = `pin/remote/add?arg=${cid}&service=s&background=true`;
    service.respondWith(() => ({ status: 202, body: pinStatus({ delegates: ["nope", ...Addresses] }) }));
    assert.equal((await online.call(add)).status, 200);
    assert.deepEqual(service.requests[0]?.body, { cid, origins: own });
    const connected = async () =>
      (await online.value<{ Peers: { Peer: string }[] | null }>("swarm/peers")).Peers?.some(({ Peer }) => Peer === ID);
    await eventually("the delegate is connected", connected);
    service.respondWith(() => ({ status: 202, body: pinStatus({ delegates: ["/ip4/127.0.0.1/tcp/1"] }) }));
    assert.deepEqual(await online.failure(add), [500, "invalid p2p multiaddr"]);
  } finally {
    await other.stop();
  }
});

test("a client library adds, lists and removes", async () => {
  const { remote } = create({ url: `http://127.0.0.1:${host.http}` }).pin;
  const name = "library";
  await remote.service.add(name, { endpoint: new URL(service.endpoint), key: "secret" });
  service.respondWith(({ method, target }) => {
    if (method === "DELETE") return { status: 202 };
    return target.startsWith("/pins?")
      ? { body: { count: 1, results: [pinStatus()] } }
      : { status: 202, body: pinStatus() };
  });
  const pin = await remote.add(CID.parse(cid), { service: name, name: "x" });
  assert.deepEqual([pin.status, pin.cid.toString(), pin.name], ["pinned", cid, "x"]);
  const listed = [];
  for await (const { name: found } of remote.ls({ service: name })) listed.push(found);
  assert.deepEqual(listed, ["x"]);
  await remote.rm({ service: name, name: "x" });
  const known = await remote.service.ls({ stat: true });
  assert.deepEqual(
    known.map(({ service: each, stat }) => [each, stat?.status]),
    [
      [name, "valid"],
      ["s", "valid"],
    ],
  );
  await remote.service.rm(name);
});
