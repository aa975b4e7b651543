/** One table of commands at both levels. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  type Commands,
  defineGroup,
  nothing,
  raw,
  readCommand,
  value,
  writeCommand,
} from "#modules/mod_http_api/rpc/command.ts";
import { levels, wordingOf } from "#modules/mod_http_api/rpc/levels.ts";
import { commandLines, commandTree } from "#modules/mod_http_api/rpc/listing.ts";
import { openApi } from "#modules/mod_http_api/rpc/openapi.ts";
import { Table } from "#modules/mod_http_api/rpc/table.ts";
import { failure, NodeError } from "#node/util/errors.ts";

const part = {
  dag: defineGroup({ help: "Nodes." }),
  "dag/get": readCommand({
    help: "Returns a node.",
    options: { "output-codec": { type: "string", since: "0.43", help: "The codec." } },
    returns: value("any"),
    run: () => "then",
  }),
  "dag/sum": readCommand({ help: "Sums up.", since: "0.43", readOnly: true, returns: nothing, run: () => undefined }),
  routing: defineGroup({ help: "Routing.", since: "0.43" }),
  "routing/get": readCommand({ help: "Gets.", since: "0.43", returns: nothing, run: () => undefined }),
  tar: defineGroup({ help: "Archives." }),
  "tar/add": writeCommand({ help: "Adds one.", returns: nothing, run: () => undefined }),
  object: defineGroup({ help: "Objects." }),
  "object/put": writeCommand({
    help: "Stores one.",
    file: { name: "data", required: true, help: "It." },
    returns: nothing,
    run: () => undefined,
  }),
} satisfies Commands;

const table = new Table([part], {
  today: [{ "dag/get": readCommand({ help: "Returns a node.", returns: raw, run: () => "today" as never }) }],
});
const ran = (at: Table, path: string) => {
  const entry = at.node(path)?.entry;
  assert.ok(entry !== undefined && "run" in entry, path);
  return entry.run({} as never);
};

describe("what came with 0.43", () => {
  test("is served at 0.9 and not listed", () => {
    assert.deepEqual(
      table.commands().map(([path]) => path),
      ["dag/get", "object/put", "tar/add"],
    );
    assert.deepEqual(
      commandLines(commandTree(table, true)).filter((line) => /dag|routing|api-auth/.test(line)),
      ["ipfs dag", "ipfs dag get"],
    );
    assert.doesNotMatch(openApi(table), /dag\/sum|output-codec|routing|repo-dir/);
    assert.equal(ran(table, "routing/get"), undefined);
    assert.ok(table.node("dag/get")?.options.has("output-codec"));
    assert.ok(table.readOnly().node("dag/sum") !== undefined);
  });

  test("is listed at 0.43", () => {
    const today = table.at("0.43");
    assert.deepEqual(
      today.commands().map(([path]) => path),
      ["dag/get", "dag/sum", "object/put", "routing/get"],
    );
    assert.ok(commandTree(today, false).Options.some(({ Names: [name] }) => name === "repo-dir"));
    assert.ok(!commandTree(table, false).Options.some(({ Names: [name] }) => name === "repo-dir"));
    assert.match(openApi(today), /"version":"0.43.0"/);
    assert.match(openApi(today), /"repo-dir"/);
    const { paths, components } = JSON.parse(openApi(table, { served: true }));
    assert.equal(components.parameters["repo-dir"].name, "repo-dir", "served, though not listed");
    const since = Object.entries<{ post: Record<string, unknown> }>(paths).filter(([, { post }]) => post["x-since"]);
    assert.ok(since.length > 0 && since.every(([path]) => !openApi(table).includes(`"${path}"`)));
  });
});

describe("what clashes", () => {
  test("has the declaration of its level, and a table of each level is made once", () => {
    assert.equal(ran(table.at("0.9"), "dag/get"), "then");
    assert.equal(ran(table.at("0.43"), "dag/get"), "today");
    assert.equal(table.at("0.43"), table.at("0.43"));
    const chosen = { "dag/get": readCommand({ help: "Mine.", returns: raw, run: () => "chosen" as never }) };
    assert.equal(ran(table.at("0.43", chosen), "dag/get"), "chosen");
    assert.equal(table.at("0.9", chosen).level.clashes["dag/get"], undefined);
    assert.ok(table.at("0.9").level.clashes["dag/get"] !== undefined);
  });

  test("a topic is taken for one of the other level where it can hardly be a plain one", () => {
    const { clashes } = levels["0.9"];
    const clash = (path: string, given: readonly string[], hasBody = false, queried = given.length) =>
      clashes[path]?.({ given, queried, options: {}, hasBody });
    const encoded = `u${Buffer.from("my topic").toString("base64url")}`;
    const word = "uaicg";
    assert.match(Buffer.from(word.slice(1), "base64url").toString(), /^[ -~]{3}$/);
    for (const path of ["pubsub/sub", "pubsub/peers"]) {
      assert.equal(clash(path, [encoded]), true);
      assert.equal(clash(path, [word]), false);
    }
    assert.equal(clash("pubsub/pub", [encoded], true), true);
    assert.equal(clash("pubsub/pub", [encoded, "data"], true), false);
    assert.equal(clash("pubsub/pub", [encoded, "data of the body"], true, 1), true);
    assert.equal(clash("pubsub/pub", [encoded]), false);
  });

  test("what is gone is not there, or says so without looking at the call", () => {
    const today = table.at("0.43");
    assert.equal(today.node("tar"), undefined);
    assert.equal(today.node("tar/add"), undefined);
    assert.throws(() => ran(today, "object/put"), /^NodeError: removed, use 'ipfs dag' or 'ipfs files' instead$/);
    const { entry } = today.node("object/put") ?? {};
    assert.ok(entry !== undefined && "run" in entry && entry.file === undefined);
  });
});

describe("texts of failures", () => {
  const today = (thrown: unknown) => wordingOf(thrown, levels["0.43"]);

  test("are those of the level, by code and details", () => {
    const missing = failure("BLOCK_NOT_FOUND", { cid: "bafy" });
    assert.equal(wordingOf(missing, levels["0.9"]), "blockservice: key not found");
    assert.equal(today(missing), "block was not found locally (offline): ipld: could not find bafy");
    const path = failure("INVALID_PATH", {
      path: '"/ipfs/x"',
      reason: "no",
      fault: "root",
      later: "invalid cid: short",
    });
    assert.equal(today(path), 'invalid path "/ipfs/x": invalid cid: short');
  });

  test("are those of the node where a detail is missing, and for all else", () => {
    assert.equal(today(failure("BLOCK_NOT_FOUND")), "blockservice: key not found");
    assert.equal(today(new NodeError("no such thing")), "no such thing");
    assert.equal(today(failure("IS_DIRECTORY")), "this dag node is a directory");
    assert.equal(today(new Error("bug")), "bug");
    assert.equal(today("text"), "text");
  });
});
