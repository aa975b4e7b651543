import assert from "node:assert/strict";
import { PassThrough, Readable } from "node:stream";
import { describe, test } from "node:test";
import type { Call } from "#modules/mod_http_api/cli/rpc/parse.ts";
import type { Session } from "#modules/mod_http_api/cli/rpc/session.ts";
import { tables, tabular } from "#modules/mod_http_api/cli/rpc/tables.ts";

const cid = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";

/** Returns what a command prints for a response, and the encoding that it requested. */
async function shown(path: string, reply: unknown, isTTY = true, options: readonly string[] = []) {
  const table = tables[path];
  assert.ok(table);
  const stdout = Object.assign(new PassThrough(), { isTTY });
  const stderr = new PassThrough();
  let text = "";
  let encoding = "";
  const session = {
    context: { stdout, stderr, env: { NO_COLOR: "1" } },
    send: async (call: Call) => {
      encoding = call.options.get("encoding")?.[0] ?? "";
      return {
        status: 200,
        headers: {},
        body: Readable.from([Buffer.from(JSON.stringify(reply))]),
        late: () => undefined,
      };
    },
    write: async (piece: string) => void (text += piece),
    progress: () => undefined,
  } as unknown as Session;
  const command = { path, returns: "value" };
  const call = { command, arguments: [], files: [], options: new Map(options.map((name) => [name, ["true"]])) };
  await tabular(table)(session, call as unknown as Call);
  return { text, encoding, stderr: String(stderr.read(stderr.readableLength) ?? "") };
}

describe("responses on a terminal", () => {
  test("responses on a terminal are tables with human-readable sizes", async () => {
    const Links = [
      { Name: "a\u001b[2J.txt", Hash: cid, Size: 1_234_567, Type: 2 },
      { Name: "日本", Hash: cid, Size: 0, Type: 1 },
    ];
    const { text } = await shown("ls", { Objects: [{ Hash: cid, Links }] });
    assert.equal(
      text,
      [
        `${"CID".padEnd(46)}  SIZE    TYPE    NAME`,
        `${cid}  1.2 MB  file    a\\x1b[2J.txt`,
        `${cid}  0 B     folder  日本`,
        "",
      ].join("\n"),
    );
    const stat = await shown("repo/stat", {
      RepoSize: 52_000_000,
      StorageMax: 10e9,
      NumObjects: 12345,
      RepoPath: "/r",
    });
    assert.match(stat.text, /^RepoPath +\/r\nNumObjects +12,345\nRepoSize +52\.0 MB\nStorageMax +10\.0 GB\n$/);
    const keys = await shown("key/list", { Keys: [{ Name: "self", Id: "k51" }] });
    assert.equal(keys.text, "NAME  ID\nself  k51\n");
    const pins = await shown("pin/ls", { Keys: { [cid]: { Type: "recursive" } } });
    assert.match(pins.text, new RegExp(`\\n${cid} {2}recursive\\n$`));
  });

  test("a table has rows of the declared fields, without empty columns, with human-readable numbers and lists", async () => {
    const link = { "/": cid };
    const cases: readonly (readonly [path: string, reply: unknown, text: string, ...options: string[]])[] = [
      ["files/ls", { Entries: [{ Name: "a", Type: 1, Size: 0, Hash: cid }] }, `${cid}  0 B   folder  a`, "long"],
      ["files/stat", { Hash: cid, Type: "file", Size: 1_500_000 }, `CID   ${cid}\nType  file\nSize  1.5 MB`],
      ["pin/remote/ls", { Cid: cid, Status: "pinned", Name: "mine" }, `${cid}  pinned   mine`],
      ["pin/remote/service/ls", { RemoteServices: [{ Service: "s", ApiEndpoint: "http://x" }] }, "s        http://x"],
      [
        "pin/remote/service/ls",
        {
          RemoteServices: [
            {
              Service: "s",
              ApiEndpoint: "u",
              Stat: { Status: "valid", PinCount: { Pinned: 3, Queued: 1, Failed: 0 } },
            },
            { Service: "t", ApiEndpoint: "v", Stat: { Status: "invalid" } },
          ],
        },
        "s        u         3 pinned, 1 queued\nt        v         invalid",
      ],
      ["swarm/addrs", { Addrs: { Qa: ["/ip4/1.2.3.4", "/ip6/::1"], Qb: [] } }, "Qa    /ip4/1.2.3.4\nQa    /ip6/::1"],
      ["dht/findprovs", { Type: 4, Responses: [{ ID: "Qa", Addrs: ["/a", "/b"] }] }, "Qa    /a /b"],
      [
        "bitswap/stat",
        { BlocksSent: 1234, DataSent: 2000, Peers: ["Qa"], Wantlist: [link, link] },
        `Partners     1\nWanted       ${cid}\n             ${cid}`,
      ],
      [
        "bitswap/ledger",
        { Peer: "Qa", Value: 0.5, Sent: 1000, Recv: 0, Exchanged: 7 },
        "Debt ratio  0.500000\nExchanges   7\nSent        1.0 kB\nReceived    0 B",
      ],
      [
        "id",
        { ID: "Qa", Addresses: null, Protocols: ["/x", "/y"] },
        "ID         Qa\nAddresses  none\nProtocols  /x\n           /y",
      ],
      ["version", { Version: "0.9.0", Commit: "" }, "Version  0.9.0"],
      ["stats/bw", { TotalIn: 1000, RateIn: 2000.5 }, "Received   1.0 kB\nReceiving  2.0 kB/s"],
      ["stats/repo", { RepoSize: 1000 }, "RepoSize  1.0 kB"],
    ];
    for (const [path, reply, expected, ...options] of cases) {
      const { text } = await shown(path, reply, true, options);
      assert.ok(text.endsWith(`${expected}\n`), `${path}:\n${text}`);
    }
  });

  test("an empty response on a terminal says that the list is empty", async () => {
    const { text, stderr } = await shown("swarm/peers", { Peers: null });
    assert.deepEqual([text, stderr], ["", "The list is empty.\n"]);
  });

  test("responses are printed as the server writes them in a pipe, or if another form is requested", async () => {
    assert.equal((await shown("pin/ls", { Keys: {} }, false)).encoding, "text");
    assert.equal((await shown("pin/ls", { Keys: {} }, true, ["quiet"])).encoding, "text");
    assert.equal((await shown("pin/ls", { Keys: {} })).encoding, "");
    assert.equal((await shown("files/ls", {})).encoding, "text", "without -l it is names alone");
    assert.equal((await shown("version", {}, true, ["number"])).encoding, "text");
    assert.equal((await shown("swarm/peers", {}, true, ["verbose"])).encoding, "text");
  });
});
