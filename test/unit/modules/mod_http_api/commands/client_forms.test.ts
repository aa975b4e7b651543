/**
 * Calls in the form that client libraries send: with options that are not set, and with trailing
 * slashes in paths.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { table } from "#modules/mod_http_api/commands/index.ts";
import { isCommand } from "#modules/mod_http_api/rpc/command.ts";
import { find } from "#modules/mod_http_api/rpc/parse_call.ts";
import { type RpcHost, startRpc } from "./support.ts";

const emptyDirectory = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";
const hello = { hello: "hello\n" };

type Call = readonly [path: string, files?: Readonly<Record<string, string>>];

/** Calls with an unset option that go-ipfs 0.9.0 or Kubo 0.43.0 treats as not given. */
const unset: Readonly<Record<"0.9" | "0.43", readonly Call[]>> = {
  "0.9": [
    ["key/gen?type=rsa&size=-1&arg=by-size"],
    ["version?timeout="],
    [`resolve?arg=/ipfs/${emptyDirectory}&dht-timeout=`],
    [`resolve?arg=/ipfs/${emptyDirectory}&dht-timeout=-1`],
    ["add?mtime-nsecs=0", hello],
    ["add?mode=&mtime=&max-file-links=", hello],
    ["dag/put?store-codec=&input-codec=", { node: '{"a":1}' }],
    [`dag/get?output-codec=&arg=${emptyDirectory}`],
    ["pubsub/reset?peer="],
  ],
  "0.43": [
    ["key/gen?type=rsa&size=-1&arg=by-size"],
    ["key/gen?size=-1&arg=ed25519"],
    ["version?timeout="],
    [`resolve?arg=/ipfs/${emptyDirectory}&dht-timeout=`],
    [`resolve?arg=/ipfs/${emptyDirectory}&dht-timeout=-1`],
    ["add?hash=&mtime-nsecs=0", hello],
    ["block/put?cid-codec=&format=&mhtype=", { data: "a block" }],
    ["key/sign?key=", { data: "signed" }],
    ["pubsub/reset?peer="],
  ],
};

/** Returns the same call without options that have no value, -1 or 0. */
const withoutUnset = (path: string) => path.replace(/([?&])(?!arg=)[^=&]+=(?:-1|0)?(?=&|$)/g, "$1");

const outcomeOf = ({ status, lines }: Awaited<ReturnType<RpcHost["call"]>>) =>
  // Keys and their signatures differ each time.
  [status, JSON.stringify(lines).replaceAll(/"(Id|Name|Signature)":"[^"]*"/g, "")];

for (const level of ["0.9", "0.43"] as const) {
  describe(`at the level ${level}`, () => {
    test("an option with the value of an unset one counts as not given", async () => {
      await using host = await startRpc({ api_level: level });
      for (const [path, files] of unset[level]) {
        const plainly = withoutUnset(path).replace("arg=by-size", "arg=plainly").replace("arg=ed25519", "arg=other");
        const given = await host.call(path, files);
        const expected = await host.call(plainly, files);
        assert.deepEqual(outcomeOf(given), outcomeOf(expected), path);
        assert.equal(given.status, 200, `${path}: ${given.text}`);
      }
    });

    test("a slash after a command does not change the command, and the text after it is its argument", () => {
      const at = table.at(level);
      for (const [path, command] of at.served()) {
        const components = path.split("/");
        if (!isCommand(command)) continue;
        assert.equal(find(at, [...components, ""])?.node.path, path);
        assert.deepEqual(find(at, [...components, "x"])?.argument ?? "x", "x", path);
      }
      assert.equal(find(at, ["commands", "completion"]) === undefined, level === "0.43");
    });

    test("a call whose path ends with a slash, or contains percent-encoded letters, works like any other", async () => {
      await using host = await startRpc({ api_level: level });
      for (const [given, plainly, files] of [
        ["version/", "version"],
        ["v%65rsion%2F?number=true", "version?number=true"],
        ["add/?pin=false", "add?pin=false", hello],
        ["dag/put/", "dag/put", { node: '{"a":1}' }],
        ["pin%2F%6Cs?type=recursive", "pin/ls?type=recursive"],
        ["repo/version/", "repo/version"],
      ] as const) {
        assert.deepEqual(await host.call(given, files), await host.call(plainly, files), given);
      }
    });

    test("an unknown log level is refused before the stream begins, and an empty one counts as not given", async () => {
      await using host = await startRpc({ api_level: level });
      const [status, message] = await host.failure("log/tail?log-level=bogus");
      assert.deepEqual([status, message], [500, 'setting log level bogus: unrecognized level: "bogus"']);
      const url = `http://127.0.0.1:${host.http}/api/v0/log/tail?log-level=`;
      const leave = new AbortController();
      const response = await fetch(url, { method: "POST", signal: leave.signal });
      assert.equal(response.status, 200);
      leave.abort();
    });
  });
}
