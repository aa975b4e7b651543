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
  kubo043: [{ "dag/get": readCommand({ help: "Returns a node.", returns: raw, run: () => "today" as never }) }],
});
const ran = (at: Table, path: string) => {
  const entry = at.node(path)?.entry;
  assert.ok(entry !== undefined && "run" in entry, path);
  return entry.run({} as never);
};

describe("a command that came with 0.43", () => {
  test("a command that came with 0.43 is served at 0.9 and not listed", () => {
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

  test("the gateway's address has no commands at 0.43, as in Kubo", () => {
    assert.deepEqual(table.at("0.43").readOnly().served(), []);
  });

  test("a command that came with 0.43 is listed at 0.43", () => {
    const kubo043 = table.at("0.43");
    assert.deepEqual(
      kubo043.commands().map(([path]) => path),
      ["dag/get", "dag/sum", "object/put", "routing/get"],
    );
    assert.ok(commandTree(kubo043, false).Options.some(({ Names: [name] }) => name === "repo-dir"));
    assert.ok(!commandTree(table, false).Options.some(({ Names: [name] }) => name === "repo-dir"));
    assert.match(openApi(kubo043), /"version":"0.43.0"/);
    assert.match(openApi(kubo043), /"repo-dir"/);
    const { paths, components } = JSON.parse(openApi(table, { served: true }));
    assert.equal(components.parameters["repo-dir"].name, "repo-dir", "served, though not listed");
    const since = Object.entries<{ post: Record<string, unknown> }>(paths).filter(([, { post }]) => post["x-since"]);
    assert.ok(since.length > 0 && since.every(([path]) => !openApi(table).includes(`"${path}"`)));
  });
});

describe("a command that differs between the levels", () => {
  test("a command has the declaration of its level, and the table of each level is built once", () => {
    assert.equal(ran(table.at("0.9"), "dag/get"), "then");
    assert.equal(ran(table.at("0.43"), "dag/get"), "today");
    assert.equal(table.at("0.43"), table.at("0.43"));
    const chosen = { "dag/get": readCommand({ help: "Mine.", returns: raw, run: () => "chosen" as never }) };
    assert.equal(ran(table.at("0.43", chosen), "dag/get"), "chosen");
    assert.equal(table.at("0.9", chosen).level.clashes["dag/get"], undefined);
    assert.ok(table.at("0.9").level.clashes["dag/get"] !== undefined);
  });

  test("a topic counts as one of the other level if it can hardly be a plain one", () => {
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

  test("a removed command is missing, or fails without reading the call", () => {
    const kubo043 = table.at("0.43");
    assert.equal(kubo043.node("tar"), undefined);
    assert.equal(kubo043.node("tar/add"), undefined);
    assert.throws(() => ran(kubo043, "object/put"), /^NodeError: removed, use 'ipfs dag' or 'ipfs files' instead$/);
    const { entry } = kubo043.node("object/put") ?? {};
    assert.ok(entry !== undefined && "run" in entry && entry.file === undefined);
  });
});

describe("texts of errors", () => {
  const kubo043 = (thrown: unknown) => wordingOf(thrown, levels["0.43"]);

  test("error texts are those of the level, by code and details", () => {
    const missing = failure("BLOCK_NOT_FOUND", { cid: "bafy" });
    assert.equal(wordingOf(missing, levels["0.9"]), "blockservice: key not found");
    assert.equal(kubo043(missing), "block was not found locally (offline): ipld: could not find bafy");
    const path = failure("INVALID_PATH", {
      path: '"/ipfs/x"',
      reason: "no",
      fault: "root",
      later: "invalid cid: short",
    });
    assert.equal(kubo043(path), 'invalid path "/ipfs/x": invalid cid: short');
  });

  test("error texts are those of the node if a detail is missing, and for everything else", () => {
    assert.equal(kubo043(failure("BLOCK_NOT_FOUND")), "blockservice: key not found");
    assert.equal(kubo043(new NodeError("NOT_RECURSIVE", "no such thing")), "no such thing");
    assert.equal(kubo043(failure("ARGUMENT_INVALID", { reason: "no such thing" })), "no such thing");
    assert.equal(kubo043(failure("IS_DIRECTORY")), "this dag node is a directory");
    assert.equal(kubo043(new Error("bug")), "bug");
    assert.equal(kubo043("text"), "text");
  });
});
