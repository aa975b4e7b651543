import assert from "node:assert/strict";
import { once } from "node:events";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import { eventually } from "#test/support/eventually.ts";
import { call, Sandbox, urlOf } from "./support.ts";

const banner =
  /^Initializing daemon\.\.\.\ngo-ipfs version: 0\.9\.0\nRepo version: 11\nSystem version: .+\nGolang version: .+\n/;
const emptyDirectory = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";
const absent = "QmPZ9gcCEpqKTo6aq61g2nXGUhM4iCL3ewB6LDXZCtioEB";

/** Occupies a free port. */
async function taken() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  return { port: (server.address() as AddressInfo).port, free: () => server.close() };
}

describe("a launcher that knows IPFS_PATH, the file api and the printed lines", () => {
  test("a launcher creates a repo, starts the daemon on it, uses it, and stops it", async () => {
    await using sandbox = await Sandbox.make();
    const made = await sandbox.done(["init", "--profile", "test"]);
    assert.match(
      made,
      /^generating ED25519 keypair\.\.\.done\npeer identity: 12D3KooW\w+\ninitializing IPFS node at .+\/repo\n$/,
    );
    const daemon = await sandbox.daemon();
    const api = await sandbox.api();
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
    assert.deepEqual([stderr, code, await sandbox.api()], ["", 0, undefined]);
    assert.deepEqual(await readdir(sandbox.folder), ["repo"]);
  });

  test("a launcher reads the swarm addresses before the address of the API", async () => {
    await using sandbox = await Sandbox.withRepo();
    const daemon = await sandbox.serve([]);
    const swarm = /^Swarm (listening on|announcing) (\/ip4\/127\.0\.0\.1\/tcp\/\d+|\/p2p-circuit)$/;
    const [first, second, third, fourth] = daemon.lines();
    for (const line of [first, second, third]) assert.match(line ?? "", swarm);
    assert.match(fourth ?? "", /^API server/);
    const { text } = await call(urlOf(await sandbox.api()), "swarm/addrs/listen");
    assert.deepEqual(
      JSON.parse(text).Strings,
      [first, second].map((line) => line?.replace("Swarm listening on ", "")),
    );
    assert.deepEqual((await daemon.stop()).stderr, "");
  });

  test("a launcher can name a folder without a repo, with --init", async () => {
    await using sandbox = await Sandbox.make();
    const daemon = await sandbox.serve(["--init", "--init-profile=test,lowpower", "--offline", "--migrate=true"]);
    assert.match(daemon.lines().join("\n"), /^generating ED25519 keypair\.\.\.done\npeer identity: /);
    const { text } = await call(urlOf(await sandbox.api()), "config?arg=Routing.Type");
    assert.deepEqual(JSON.parse(text), { Key: "Routing.Type", Value: "dhtclient" });
    await daemon.stop();
    const again = await sandbox.serve(["--init", "--init-profile=nonsense", "--offline"]);
    assert.doesNotMatch(again.lines().join("\n"), /keypair/);
    await again.stop();
  });
});

describe("the end of a daemon", () => {
  for (const signal of ["SIGINT", "SIGHUP"] as const) {
    test(`the daemon ends after ${signal}, and a second signal does not disturb it`, async () => {
      await using sandbox = await Sandbox.withRepo();
      const daemon = await sandbox.daemon();
      daemon.kill(signal);
      const { code, stdout } = await daemon.stop(signal);
      assert.equal(code, 0);
      assert.equal(stdout.split("Received interrupt signal").length, 2);
      assert.equal(await sandbox.api(), undefined);
    });
  }

  test("the daemon ends after the command shutdown, without further output", async () => {
    await using sandbox = await Sandbox.withRepo();
    const daemon = await sandbox.daemon();
    assert.equal((await call(urlOf(await sandbox.api()), "shutdown")).status, 200);
    const { code, stdout } = await daemon.ended;
    assert.equal(code, 0);
    assert.match(stdout, /Daemon is ready\n$/);
    assert.equal(await sandbox.api(), undefined);
  });

  test("the end of a daemon ends endless calls and calls that wait for blocks of peers, and cuts off no other", async () => {
    await using sandbox = await Sandbox.withRepo();
    const daemon = await sandbox.serve(["--enable-pubsub-experiment"]);
    const url = urlOf(await sandbox.api());
    const endless = ["log/tail", "pubsub/sub?arg=topic", "stats/bw?poll=true"];
    const responses = await Promise.all(
      endless.map((command) => fetch(`${url}/api/v0/${command}`, { method: "POST" })),
    );
    assert.deepEqual(
      responses.map(({ status }) => status),
      [200, 200, 200],
    );
    const bodies = Promise.all(responses.map((response) => response.text()));
    const waiting = call(url, `block/get?arg=${absent}`);
    await eventually("the node wants the block", async () =>
      (await call(url, "bitswap/wantlist")).text.includes(absent),
    );
    assert.equal((await daemon.stop()).stderr, "");
    assert.equal((await waiting).status, 500);
    await bodies;
  });

  test("kill -9 of a daemon leaves nothing behind that hinders the next daemon", async () => {
    await using sandbox = await Sandbox.withRepo();
    const daemon = await sandbox.daemon();
    const previous = await sandbox.api();
    await daemon.stop("SIGKILL");
    assert.equal(await sandbox.api(), previous);
    assert.match(await sandbox.done(["pin", "ls"]), new RegExp(`^${emptyDirectory} recursive\n$`));
    const next = await sandbox.daemon();
    assert.equal((await call(urlOf(await sandbox.api()), "id")).status, 200);
    await next.stop();
  });
});

describe("the addresses of a daemon", () => {
  test("the addresses of a daemon come from the config: lists, free ports and sockets; the file api has the first one", async () => {
    await using elsewhere = await Sandbox.make();
    const socket = join(elsewhere.folder, "api.sock");
    const one = "/ip4/127.0.0.1/tcp/0";
    const six = "/ip6/::1/tcp/0";
    await using sandbox = await Sandbox.withRepo({
      "Addresses.API": [`/unix${socket}`, one, six],
      "Addresses.Gateway": [one, six],
      "API.HTTPHeaders": { "X-Special": ["so special"] },
    });
    const daemon = await sandbox.serve();
    const listening = (who: string) =>
      daemon.lines().flatMap((line) => (line.startsWith(who) ? [line.slice(`${who} listening on `.length)] : []));
    const api = listening("API server");
    const gateway = listening("Gateway (readonly) server");
    assert.deepEqual([api.length, api[0], gateway.length], [3, `/unix${socket}`, 2]);
    assert.equal(await sandbox.api(), `/unix${socket}`);
    assert.equal(await readFile(join(sandbox.repo, "gateway"), "utf8"), urlOf(gateway[0]));
    const ports = new Set([...api.slice(1), ...gateway]);
    assert.equal(ports.size, 4);
    assert.match(api[2] ?? "", /^\/ip6\/::1\/tcp\/[1-9]\d*$/);
    for (const address of api.slice(1)) {
      const { status, headers } = await call(urlOf(address), "id");
      assert.deepEqual([status, headers.get("x-special")], [200, "so special"]);
      const metrics = await fetch(`${urlOf(address)}/debug/metrics/prometheus`);
      assert.match(await metrics.text(), /^ipfs_info\{.*version="0\.9\.0".*\} 1$/m);
    }
    for (const address of gateway) {
      const url = urlOf(address);
      assert.equal((await call(url, `ls?arg=${emptyDirectory}`)).status, 200);
      assert.equal((await call(url, "shutdown")).status, 404);
      assert.equal((await fetch(`${url}/debug/metrics/prometheus`)).status, 404);
      assert.match(await (await fetch(`${url}/ipfs/${emptyDirectory}`)).text(), /Index of/);
    }
    const sent = request({ socketPath: socket, path: "/api/v0/version", method: "POST" }).end();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    assert.equal(response.statusCode, 200);
    response.resume();
    assert.equal((await sandbox.run(["id", "--format=<id>"])).code, 0);
    await daemon.stop();
  });

  test("the address of the gateway may be empty, and clients see a wildcard as loopback", async () => {
    await using sandbox = await Sandbox.withRepo({ "Addresses.API": "/ip4/0.0.0.0/tcp/0", "Addresses.Gateway": [] });
    const daemon = await sandbox.serve();
    const printed = daemon.lines().find((line) => line.startsWith("API server")) ?? "";
    const [, port] = /^API server listening on \/ip4\/0\.0\.0\.0\/tcp\/(\d+)$/.exec(printed) ?? [];
    assert.equal(await sandbox.api(), `/ip4/127.0.0.1/tcp/${port}`);
    assert.equal(daemon.lines().at(-2), printed);
    await daemon.stop();
  });

  for (const [key, title] of [
    ["Addresses.API", "serveHTTPApi"],
    ["Addresses.Gateway", "serveHTTPGateway"],
  ] as const) {
    test(`a daemon does not start if an address of ${key} is in use`, async () => {
      const { port, free } = await taken();
      await using sandbox = await Sandbox.withRepo({ [key]: `/ip4/127.0.0.1/tcp/${port}` });
      const address = `/ip4/127.0.0.1/tcp/${port}`;
      await assert.rejects(sandbox.serve(), {
        message: `${title}: manet.Listen(${address}) failed: listen tcp 127.0.0.1:${port}: bind: address already in use`,
      });
      free();
      assert.equal(await sandbox.api(), undefined);
      assert.ok(!(await readdir(sandbox.repo)).includes("repo.lock"));
    });
  }

  test("a daemon does not start if an address is not a TCP port or a Unix socket", async () => {
    await using sandbox = await Sandbox.withRepo({ "Addresses.API": "/ip4/127.0.0.1/udp/5001" });
    await assert.rejects(sandbox.serve(), {
      message: /^serveHTTPApi: invalid API address: "\/ip4\/127\.0\.0\.1\/udp\/5001" \(err: /,
    });
  });
});

describe("a daemon does not start", () => {
  test("a daemon does not start on a repo that another daemon uses, which keeps running", async () => {
    await using sandbox = await Sandbox.withRepo();
    const daemon = await sandbox.serve();
    const { code, stdout, stderr } = await sandbox.run(["daemon", "--offline"]);
    assert.deepEqual(
      [code, stderr],
      [1, `Error: lock ${join(sandbox.repo, "repo.lock")}: someone else has the lock\n`],
    );
    assert.match(stdout, banner);
    assert.equal((await call(urlOf(await sandbox.api()), "id")).status, 200);
    await daemon.stop();
  });

  test("a daemon does not start without a repo", async () => {
    await using sandbox = await Sandbox.make();
    const { code, stdout, stderr } = await sandbox.run(["daemon"]);
    assert.equal(code, 1);
    assert.match(stdout, banner);
    assert.equal(stderr, `Error: no IPFS repo found in ${sandbox.repo}.\nplease run: 'ipfs init'\n`);
  });

  test("a daemon does not start on an invalid config, and names the file", async () => {
    await using sandbox = await Sandbox.withRepo();
    const file = join(sandbox.repo, "config");
    await writeFile(file, '{ "Identity": ');
    await assert.rejects(sandbox.serve(), {
      message: `failure to decode config: unexpected end of JSON input: fix ${file}, or restore a backup of it`,
    });
    assert.ok(!(await readdir(sandbox.repo)).includes("repo.lock"));
  });

  test("a daemon does not start on a repo of an older format", async () => {
    await using sandbox = await Sandbox.withRepo();
    await writeFile(join(sandbox.repo, "version"), "10\n");
    const { code, stdout, stderr } = await sandbox.run(["daemon", "--offline", "--migrate=true"]);
    assert.equal(code, 1);
    assert.match(stdout, /Found outdated fs-repo, migrations need to be run\.\n$/);
    assert.match(stderr, /^Error: ipfs repo needs migration: /);
  });

  test("a daemon does not start with contradictory, unsupported or unknown flags", async () => {
    await using sandbox = await Sandbox.withRepo();
    for (const [args, reason] of [
      [["--routing=nonsense"], /^unrecognized routing option: nonsense$/],
      [["--disable-transport-encryption"], /always encrypted/],
      [["--mount"], /^mount is not currently supported in offline mode$/],
      [["--bogus"], /^daemon has no option --bogus$/],
      [["extra"], /^daemon takes no argument, but there is extra$/],
    ] as const) {
      await assert.rejects(sandbox.serve(["--offline", ...args]), { message: reason });
      assert.equal(await sandbox.api(), undefined);
    }
  });
});

test("the log has the levels, the format and the file that the variables of go-ipfs name", async () => {
  await using sandbox = await Sandbox.withRepo();
  const env = {
    GOLOG_LOG_LEVEL: "info,nonsense=debug",
    GOLOG_LOG_FMT: "json",
    GOLOG_FILE: "node.log",
    MODHOST_NONSENSE: "1",
  };
  const daemon = await sandbox.serve(["--offline"], env);
  const { stderr } = await daemon.stop();
  assert.equal(stderr, "modhost: nonsense=debug: Error: No such logger\n");
  const lines = (await readFile(join(sandbox.folder, "node.log"), "utf8")).trimEnd().split("\n");
  const entries = lines.map((line) => JSON.parse(line) as { level: string; msg: string });
  assert.ok(entries.some(({ level, msg }) => level === "warn" && msg.includes("MODHOST_NONSENSE")));
});

test("log/level changes what a running daemon writes to stderr, for all subsystems and for a single one", async () => {
  await using sandbox = await Sandbox.withRepo();
  const daemon = await sandbox.serve();
  const url = urlOf(await sandbox.api());
  const levelThenRequest = async (subsystem: string, level: string, version: string) => {
    await call(url, `log/level?arg=${subsystem}&arg=${level}`);
    await call(url, `version?arg=${version}`);
  };
  await call(url, "version?arg=before");
  await levelThenRequest("all", "debug", "a");
  await levelThenRequest("all", "error", "b");
  await levelThenRequest("dht", "debug", "c");
  await levelThenRequest("cmds%2Fhttp", "debug", "d");
  await levelThenRequest("cmds%2Fhttp", "error", "e");
  const { stderr } = await daemon.stop();
  const requests = [...stderr.matchAll(/"level":"debug".*"cmds\/http: incoming API request: (.*)"/g)].map(
    ([, path]) => path,
  );
  assert.deepEqual(requests, [
    "/version?arg=a",
    "/log/level?arg=all&arg=error",
    "/version?arg=d",
    "/log/level?arg=cmds%2Fhttp&arg=error",
  ]);
  assert.match(stderr, /"core\/commands: Changed log level of '\*' to 'debug'"/);
});
