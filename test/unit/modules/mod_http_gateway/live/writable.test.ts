import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { request } from "node:http";
import { after, before, describe, test } from "node:test";
import { type RpcHost, startRpc } from "#test/unit/modules/mod_http_api/commands/support.ts";
import { askAt, prepareRepo } from "../support.ts";

const EMPTY = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";
const EMPTY_V1 = "bafybeiczsscdsbs7ffqz55asqdf3smv6klcw3gofszvwlyarci47bgf354";
/** The CID of "hello" as go-ipfs adds it. */
const HELLO = "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX";

interface Written {
  readonly status: number;
  readonly hash: string | undefined;
  readonly location: string | undefined;
  readonly body: string;
}

// The expected responses, including CIDs, are those of go-ipfs 0.9.0.
describe("a writable gateway at Addresses.Gateway", () => {
  let host: RpcHost;
  const port = () => host.host.listening().find(({ service }) => service === "http_api_gateway")?.port as number;
  const set = (key: string, value: unknown) =>
    host.call(`config?arg=${key}&arg=${encodeURIComponent(JSON.stringify(value))}&json=true`);
  async function write(
    method: string,
    path: string,
    body: string | Buffer = "",
    headers: Record<string, string> = {},
  ): Promise<Written> {
    const given = { connection: "close", ...headers };
    const outgoing = request({ port: port(), host: "127.0.0.1", path, method, headers: given });
    outgoing.end(body);
    const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
    const text = String(Buffer.concat(await incoming.toArray()));
    const { location, "ipfs-hash": hash } = incoming.headers as Record<string, string | undefined>;
    return { status: incoming.statusCode ?? 0, hash, location, body: text };
  }
  /** Returns the response for new content, which has no body. */
  const made = (hash: string, path = ""): Written => ({
    status: 201,
    hash,
    location: `/ipfs/${hash}${path}`,
    body: "",
  });
  const read = async (path: string) => (await askAt(port(), `/ipfs/${path}`, {}, "GET")).body;

  before(async () => {
    host = await startRpc(
      { modules_enabled: ["http", "http_api", "http_gateway"] },
      {
        prepare: prepareRepo,
      },
    );
  });
  after(() => host?.stop());

  test("writing is off by default and can be switched on and off while the host runs", async () => {
    const { status, body } = await write("POST", "/ipfs/", "hello");
    assert.deepEqual([status, body], [405, "Method POST not allowed: read only access\n"]);
    await set("Gateway.Writable", true);
    assert.deepEqual(await write("POST", "/ipfs/", "hello"), made(HELLO));
    await set("Gateway.Writable", false);
    assert.equal((await write("DELETE", `/ipfs/${EMPTY}/a`)).status, 405);
    await set("Gateway.Writable", true);
    const { headers } = await askAt(port(), `/ipfs/${HELLO}`, {}, "PATCH");
    assert.equal(headers.allow, "GET, HEAD, OPTIONS, POST, PUT, DELETE");
  });

  test("POST adds the body, whatever the path is, and pins nothing", async () => {
    assert.equal(await read(HELLO), "hello");
    assert.deepEqual(await write("POST", `/ipfs/${EMPTY}`, "hello"), made(HELLO));
    assert.deepEqual(await write("POST", "/ipfs/"), made("QmbFMke1KXqnYyBBWxB74N4c5SBnJMVAiMNRcGu6x1AwQH"));
    const large = await write("POST", "/ipfs/", Buffer.alloc(3_000_000));
    assert.deepEqual(large, made("QmPLLdrvqF6qukdJPzfxNNBhVQncSXhRxuJs2rybrKihko"));
    assert.doesNotMatch((await host.call("pin/ls")).text, new RegExp(HELLO));
  });

  test("PUT adds a file to a directory and returns the new directory", async () => {
    const one = "QmeN21vwo3ukxKrHZuVK34YBKuvR8pCJevTCM5WVRVb7qE";
    assert.deepEqual(await write("PUT", `/ipfs/${EMPTY}/a.txt`, "hello"), made(one, "/a.txt"));
    const deep = "QmV6bQSrFxVB9L2nR2JkTqtNfPubFKAmReVic14EZo82RG";
    assert.deepEqual(await write("PUT", `/ipfs/${EMPTY}/d/e/a.txt`, "hello"), made(deep, "/d/e/a.txt"));
    const other = "QmabZ48VXJYZXZvtUqMawEa2ckTJphDB1iHW9TBTMfPRCd";
    assert.deepEqual(await write("PUT", `/ipfs/${deep}/d/e/a.txt`, "x"), made(other, "/d/e/a.txt"));
    assert.deepEqual([await read(`${deep}/d/e/a.txt`), await read(`${other}/d/e/a.txt`)], ["hello", "x"]);
    const replaced = "QmSc9rqAfWTtXqi4KMsHsgWdNHWcMwKybhM5iNV2N2UcYb";
    assert.deepEqual(await write("PUT", `/ipfs/${deep}/d/`, "x"), made(replaced, "/d"));
    const later = "bafybeihbmth5len5vdke3ozvm527qb3java5rpnb4sa7mmhffeewycav6q";
    assert.deepEqual(await write("PUT", `/ipfs/${EMPTY_V1}/a`, "x"), made(later, "/a"));
    const spaced = "QmY3B8vE4V6dJNtyAyK1vqkRxQupryDrYsDRffge7vzjCa";
    const path = "/a%20b/%C3%BC.txt";
    assert.deepEqual(await write("PUT", `/ipfs/${EMPTY}${path}`, "x"), made(spaced, path));
  });

  test("DELETE removes an entry and leads to the directory that contained it", async () => {
    const deep = "QmV6bQSrFxVB9L2nR2JkTqtNfPubFKAmReVic14EZo82RG";
    const bare = "QmQ39cAEovxhRp9goktpY2tFK9usBvejwTPFJxRUQo5mtA";
    assert.deepEqual(await write("DELETE", `/ipfs/${deep}/d/e/a.txt`), made(bare, "/d/e"));
    assert.deepEqual(await write("DELETE", `/ipfs/${deep}/d/e/none`), made(deep, "/d/e"));
    assert.deepEqual(await write("DELETE", `/ipfs/${deep}/d/`), made(EMPTY));
  });

  test("invalid writes are rejected with the error text of go-ipfs", async () => {
    const deep = "QmV6bQSrFxVB9L2nR2JkTqtNfPubFKAmReVic14EZo82RG";
    for (const [method, path, status, sentence] of [
      ["PUT", `/ipfs/${EMPTY}`, 400, /^WritableGateway: empty path/],
      ["PUT", `/ipfs/${EMPTY}/`, 400, /^WritableGateway: empty path/],
      ["PUT", "/ipfs/", 400, /path does not have enough components/],
      ["PUT", "/ipfs/bad/a", 400, /invalid cid/],
      ["DELETE", `/ipns/${EMPTY_V1}/a`, 400, /only ipfs paths supported/],
      ["PUT", `/ipfs/${HELLO}/a`, 400, /is not a directory/],
      ["PUT", `/ipfs/${deep}/d/e/a.txt/b`, 500, /file already exists/],
      ["DELETE", `/ipfs/${deep}/d/x/none`, 500, /failed to look up parent: file does not exist/],
      ["PUT", `/ipfs/bafybeifx7yeb55armcsxwwitkymga5xf53dxiarykms3ygqic223w5sk3m/a`, 404, /not found/],
    ] as const) {
      const { status: actual, body } = await write(method, path, "x");
      assert.equal(actual, status, `${method} ${path}: ${body}`);
      assert.match(body, sentence);
    }
  });

  test("pages of other origins may write if the operator allows their methods, and hosts of roots accept writes", async () => {
    const page = { origin: "http://page.example" };
    assert.equal((await write("POST", "/ipfs/", "hello", page)).status, 403);
    assert.equal((await write("POST", "/ipfs/", "hello", { origin: `http://127.0.0.1:${port()}` })).status, 201);
    await set("Gateway.HTTPHeaders", { "Access-Control-Allow-Methods": ["POST"] });
    assert.equal((await write("POST", "/ipfs/", "hello", page)).status, 201);
    assert.equal((await write("DELETE", `/ipfs/${EMPTY}/a`, "", page)).status, 403);
    const later = "bafybeihbmth5len5vdke3ozvm527qb3java5rpnb4sa7mmhffeewycav6q";
    const local = { host: `localhost:${port()}` };
    assert.deepEqual(await write("PUT", `/ipfs/${EMPTY_V1}/a`, "x", local), made(later, "/a"));
    const below = { host: `${EMPTY_V1}.ipfs.localhost:${port()}` };
    assert.deepEqual(await write("PUT", "/a", "x", below), made(later, "/a"));
  });
});
