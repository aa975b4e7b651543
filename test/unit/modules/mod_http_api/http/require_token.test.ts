/**
 * Option `api_require_token`: callers of this machine need a token, and the owner's command line
 * has one.
 */
import assert from "node:assert/strict";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { called } from "#test/unit/core/cli/called.ts";
import { type RpcHost, startRpc } from "../commands/support.ts";
import { ask } from "../support.ts";

describe("with api_require_token", () => {
  let host: RpcHost;
  let repo: string;
  before(async () => {
    host = await startRpc({ api_require_token: true, api_tokens: { "open sesame": { paths: ["/api/v0/id"] } } });
    repo = join(host.folder, "data", "repo");
  });
  after(() => host?.stop());

  const token = () => readFile(join(repo, "api-token"), "utf8");
  const statusOf = async (path: string, secret?: string) =>
    (await ask(host.http, path, { headers: secret === undefined ? {} : { Authorization: `Bearer ${secret}` } })).status;

  test("a local caller without a token is refused, and learns where to find one", async () => {
    const { status, body } = await ask(host.http, "version");
    assert.deepEqual(
      [status, body],
      [
        403,
        "403 - Forbidden: calls need a token: the one in the file api-token of the repo, or one of the option api_tokens\n",
      ],
    );
    assert.equal(await statusOf("version", "wrong"), 403);
    assert.equal((await ask(host.http, "/api/openapi.json", { method: "GET" })).status, 403);
  });

  test("a token of api_tokens opens its paths, and the repo's token opens everything", async () => {
    assert.deepEqual([await statusOf("id", "open sesame"), await statusOf("version", "open sesame")], [200, 403]);
    assert.deepEqual([await statusOf("id", await token()), await statusOf("version", await token())], [200, 200]);
  });

  test("the token file is readable only by its owner, and the token is long", async () => {
    assert.equal((await stat(join(repo, "api-token"))).mode & 0o777, 0o600);
    assert.ok((await token()).length >= 43);
  });

  test("the command line finds the token through the repo, and accepts others", async () => {
    const env = { IPFS_PATH: repo };
    const run = (words: readonly string[], address?: string) => called(host.folder, words, { env, address });
    assert.equal((await run(["version", "-n"])).stdout, "0.9.0\n");
    const address = `http://127.0.0.1:${host.http}`;
    const refused = await run(["version"], address);
    assert.deepEqual([refused.code, /calls need a token/.test(refused.stderr)], [1, true]);
    const secret = await token();
    for (const word of [`--token=${secret}`, `--api-auth=bearer:${secret}`, `--api-auth=basic:me:${secret}`]) {
      assert.equal((await run([word, "version", "-n"], address)).stdout, "0.9.0\n", word);
    }
    const wrong = await run(["--api-auth=digest:x", "version"], address);
    assert.deepEqual([wrong.code, /--api-auth takes bearer:TOKEN/.test(wrong.stderr)], [2, true]);
  });

  test("the token changes with each load, and its file is removed with the host", async () => {
    const previous = await token();
    await host.host.reload("http_api");
    assert.notEqual(await token(), previous);
    assert.deepEqual([await statusOf("id", previous), await statusOf("id", await token())], [403, 200]);
    await host.host.stop();
    assert.ok(!(await readdir(repo)).some((name) => name.startsWith("api")));
  });
});

test("without it there is no token file", async () => {
  await using host = await startRpc();
  assert.ok(!(await readdir(join(host.folder, "data", "repo"))).includes("api-token"));
});
