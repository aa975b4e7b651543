import assert from "node:assert/strict";
import { once } from "node:events";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import { call, Place, urlOf } from "./support.ts";

const banner =
  /^Initializing daemon\.\.\.\ngo-ipfs version: 0\.9\.0\nRepo version: 11\nSystem version: .+\nGolang version: .+\n/;
const emptyDirectory = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";

/** A port that nobody has at the moment. */
async function taken() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  return { port: (server.address() as AddressInfo).port, free: () => server.close() };
}

describe("a launcher that knows IPFS_PATH, the file api and the printed lines", () => {
  test("makes a repo, starts the daemon on it, uses it, and ends it", async () => {
    await using place = await Place.make();
    const made = await place.done(["init", "--profile", "test"]);
    assert.match(
      made,
      /^generating ED25519 keypair\.\.\.done\npeer identity: 12D3KooW\w+\ninitializing IPFS node at .+\/repo\n$/,
    );
    const daemon = await place.daemon();
    const api = await place.api();
    const url = urlOf(api);
    assert.deepEqual(daemon.lines().slice(5), [
      "Swarm not listening, running in offline mode.",
      `API server listening on ${api}`,
      daemon.lines()[7],
      "Daemon is ready",
    ]);
    assert.match(daemon.lines()[7] ?? "", /^Gateway \(readonly\) server listening on \/ip4\/127\.0\.0\.1\/tcp\/\d+$/);
    const body = new FormData();
    body.append("file", new Blob(["hello"]));
    const { Hash } = JSON.parse((await call(url, "add", { body })).text);
    assert.equal((await call(url, `cat?arg=${Hash}`)).text, "hello");
    const { stdout, stderr, code } = await daemon.stop();
    assert.match(stdout, banner);
    assert.ok(
      stdout.endsWith(
        "Daemon is ready\n\nReceived interrupt signal, shutting down...\n(Hit ctrl-c again to force-shutdown the daemon.)\n",
      ),
    );
    assert.deepEqual([stderr, code, await place.api()], ["", 0, undefined]);
    assert.deepEqual(await readdir(place.folder), ["repo"]);
  });

  test("is told where others reach the node, before it is told of the API", async () => {
    await using place = await Place.withRepo();
    const daemon = await place.serve([]);
    const swarm = /^Swarm (listening on|announcing) (\/ip4\/127\.0\.0\.1\/tcp\/\d+|\/p2p-circuit)$/;
    const [first, second, third, fourth] = daemon.lines();
    for (const line of [first, second, third]) assert.match(line ?? "", swarm);
    assert.match(fourth ?? "", /^API server/);
    const { text } = await call(urlOf(await place.api()), "swarm/addrs/listen");
    assert.deepEqual(
      JSON.parse(text).Strings,
      [first, second].map((line) => line?.replace("Swarm listening on ", "")),
    );
    assert.deepEqual((await daemon.stop()).stderr, "");
  });

  test("may name a folder that has no repo yet, with --init", async () => {
    await using place = await Place.make();
    const daemon = await place.serve(["--init", "--init-profile=test,lowpower", "--offline", "--migrate=true"]);
    assert.match(daemon.lines().join("\n"), /^generating ED25519 keypair\.\.\.done\npeer identity: /);
    const { text } = await call(urlOf(await place.api()), "config?arg=Routing.Type");
    assert.deepEqual(JSON.parse(text), { Key: "Routing.Type", Value: "dhtclient" });
    await daemon.stop();
    const again = await place.serve(["--init", "--init-profile=nonsense", "--offline"]);
    assert.doesNotMatch(again.lines().join("\n"), /keypair/);
    await again.stop();
  });
});

describe("the end of a daemon", () => {
  for (const signal of ["SIGINT", "SIGHUP"] as const) {
    test(`comes with ${signal}, and is not hindered by one more`, async () => {
      await using place = await Place.withRepo();
      const daemon = await place.daemon();
      daemon.kill(signal);
      const { code, stdout } = await daemon.stop(signal);
      assert.equal(code, 0);
      assert.equal(stdout.split("Received interrupt signal").length, 2);
      assert.equal(await place.api(), undefined);
    });
  }

  test("comes with shutdown, and without a word", async () => {
    await using place = await Place.withRepo();
    const daemon = await place.daemon();
    assert.equal((await call(urlOf(await place.api()), "shutdown")).status, 200);
    const { code, stdout } = await daemon.ended;
    assert.equal(code, 0);
    assert.match(stdout, /Daemon is ready\n$/);
    assert.equal(await place.api(), undefined);
  });

  test("does not wait for calls that never end", async () => {
    await using place = await Place.withRepo();
    const daemon = await place.daemon();
    const tail = await fetch(`${urlOf(await place.api())}/api/v0/log/tail`, { method: "POST" });
    assert.equal(tail.status, 200);
    // It ends at all: the call has no end of its own.
    assert.equal((await daemon.stop()).code, 0);
    await tail.text().catch(() => undefined);
  });

  test("by kill -9 leaves nothing that hinders the next one", async () => {
    await using place = await Place.withRepo();
    const daemon = await place.daemon();
    const former = await place.api();
    await daemon.stop("SIGKILL");
    assert.equal(await place.api(), former);
    assert.match(await place.done(["pin", "ls"]), new RegExp(`^${emptyDirectory} recursive\n$`));
    const next = await place.daemon();
    assert.equal((await call(urlOf(await place.api()), "id")).status, 200);
    await next.stop();
  });
});

describe("the addresses of a daemon", () => {
  test("are those of the config: lists, free ports, sockets; the first one stands in the file api", async () => {
    await using elsewhere = await Place.make();
    const socket = join(elsewhere.folder, "api.sock");
    const [one, six] = ["/ip4/127.0.0.1/tcp/0", "/ip6/::1/tcp/0"];
    await using place = await Place.withRepo({
      "Addresses.API": [`/unix${socket}`, one, six],
      "Addresses.Gateway": [one, six],
      "API.HTTPHeaders": { "X-Special": ["so special"] },
    });
    const daemon = await place.serve();
    const listening = (who: string) =>
      daemon.lines().flatMap((line) => (line.startsWith(who) ? [line.slice(`${who} listening on `.length)] : []));
    const api = listening("API server");
    const gateway = listening("Gateway (readonly) server");
    assert.deepEqual([api.length, api[0], gateway.length], [3, `/unix${socket}`, 2]);
    assert.equal(await place.api(), `/unix${socket}`);
    assert.equal(await readFile(join(place.repo, "gateway"), "utf8"), urlOf(gateway[0]));
    const ports = new Set([...api.slice(1), ...gateway]);
    assert.equal(ports.size, 4);
    assert.match(api[2] ?? "", /^\/ip6\/::1\/tcp\/[1-9]\d*$/);
    for (const address of api.slice(1)) {
      const { status, headers } = await call(urlOf(address), "id");
      assert.deepEqual([status, headers.get("x-special")], [200, "so special"]);
    }
    for (const address of gateway) {
      const url = urlOf(address);
      assert.equal((await call(url, `ls?arg=${emptyDirectory}`)).status, 200);
      assert.equal((await call(url, "shutdown")).status, 404);
      assert.match(await (await fetch(`${url}/ipfs/${emptyDirectory}`)).text(), /Index of/);
    }
    const asked = request({ socketPath: socket, path: "/api/v0/version", method: "POST" }).end();
    const [answer] = (await once(asked, "response")) as [IncomingMessage];
    assert.equal(answer.statusCode, 200);
    answer.resume();
    assert.equal((await place.run(["id", "--format=<id>"])).code, 0);
    await daemon.stop();
  });

  test("may be none for the gateway, and a wildcard is told to clients as loopback", async () => {
    await using place = await Place.withRepo({ "Addresses.API": "/ip4/0.0.0.0/tcp/0", "Addresses.Gateway": [] });
    const daemon = await place.serve();
    const printed = daemon.lines().find((line) => line.startsWith("API server")) ?? "";
    const [, port] = /^API server listening on \/ip4\/0\.0\.0\.0\/tcp\/(\d+)$/.exec(printed) ?? [];
    assert.equal(await place.api(), `/ip4/127.0.0.1/tcp/${port}`);
    assert.equal(daemon.lines().at(-2), printed);
    await daemon.stop();
  });

  for (const [key, title] of [
    ["Addresses.API", "serveHTTPApi"],
    ["Addresses.Gateway", "serveHTTPGateway"],
  ] as const) {
    test(`are refused where ${key} has one that somebody else has`, async () => {
      const { port, free } = await taken();
      await using place = await Place.withRepo({ [key]: `/ip4/127.0.0.1/tcp/${port}` });
      const address = `/ip4/127.0.0.1/tcp/${port}`;
      await assert.rejects(place.serve(), {
        message: `${title}: manet.Listen(${address}) failed: listen tcp 127.0.0.1:${port}: bind: address already in use`,
      });
      free();
      assert.equal(await place.api(), undefined);
      assert.ok(!(await readdir(place.repo)).includes("repo.lock"));
    });
  }

  test("are refused where one cannot be listened on", async () => {
    await using place = await Place.withRepo({ "Addresses.API": "/ip4/127.0.0.1/udp/5001" });
    await assert.rejects(place.serve(), {
      message: /^serveHTTPApi: invalid API address: "\/ip4\/127\.0\.0\.1\/udp\/5001" \(err: /,
    });
  });
});

describe("a daemon does not start", () => {
  test("on a repo that another one has, which goes on", async () => {
    await using place = await Place.withRepo();
    const daemon = await place.serve();
    const { code, stdout, stderr } = await place.run(["daemon", "--offline"]);
    assert.deepEqual([code, stderr], [1, `Error: lock ${join(place.repo, "repo.lock")}: someone else has the lock\n`]);
    assert.match(stdout, banner);
    assert.equal((await call(urlOf(await place.api()), "id")).status, 200);
    await daemon.stop();
  });

  test("without a repo", async () => {
    await using place = await Place.make();
    const { code, stdout, stderr } = await place.run(["daemon"]);
    assert.equal(code, 1);
    assert.match(stdout, banner);
    assert.equal(stderr, `Error: no IPFS repo found in ${place.repo}.\nplease run: 'ipfs init'\n`);
  });

  test("on a config that is none, and names the file", async () => {
    await using place = await Place.withRepo();
    const file = join(place.repo, "config");
    await writeFile(file, '{ "Identity": ');
    await assert.rejects(place.serve(), {
      message: `failure to decode config: unexpected end of JSON input: mend ${file}, or put back a copy of it`,
    });
    assert.ok(!(await readdir(place.repo)).includes("repo.lock"));
  });

  test("on a repo of an older format", async () => {
    await using place = await Place.withRepo();
    await writeFile(join(place.repo, "version"), "10\n");
    const { code, stdout, stderr } = await place.run(["daemon", "--offline", "--migrate=true"]);
    assert.equal(code, 1);
    assert.match(stdout, /Found outdated fs-repo, migrations need to be run\.\n$/);
    assert.match(stderr, /^Error: ipfs repo needs migration: /);
  });

  test("with flags that ask for what cannot be", async () => {
    await using place = await Place.withRepo();
    for (const [args, reason] of [
      [["--routing=nonsense"], /^unrecognized routing option: nonsense$/],
      [["--disable-transport-encryption"], /always encrypted/],
      [["--mount"], /^mount is not currently supported in offline mode$/],
      [["--bogus"], /^daemon has no option --bogus$/],
      [["extra"], /^daemon takes no argument, but there is extra$/],
    ] as const) {
      await assert.rejects(place.serve(["--offline", ...args]), { message: reason });
      assert.equal(await place.api(), undefined);
    }
  });
});

test("the log has the levels, the form and the file that the variables of go-ipfs name", async () => {
  await using place = await Place.withRepo();
  const env = {
    GOLOG_LOG_LEVEL: "info,nonsense=debug",
    GOLOG_LOG_FMT: "json",
    GOLOG_FILE: "node.log",
    MODHOST_NONSENSE: "1",
  };
  const daemon = await place.serve(["--offline"], env);
  const { stderr } = await daemon.stop();
  assert.equal(stderr, "modhost: nonsense=debug: Error: No such logger\n");
  const lines = (await readFile(join(place.folder, "node.log"), "utf8")).trimEnd().split("\n");
  const told = lines.map((line) => JSON.parse(line) as { level: string; msg: string });
  assert.ok(told.some(({ level, msg }) => level === "warn" && msg.includes("MODHOST_NONSENSE")));
});
