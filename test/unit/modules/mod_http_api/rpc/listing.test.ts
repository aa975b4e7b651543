import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { rpcPages } from "#config/build/generate/rpc.ts";
import { table } from "#modules/mod_http_api/commands/index.ts";
import {
  type Command,
  type Commands,
  defineGroup,
  nothing,
  type Options,
  raw,
  readCommand,
  stream,
  value,
} from "#modules/mod_http_api/rpc/command.ts";
import { commandLines, commandTree } from "#modules/mod_http_api/rpc/listing.ts";
import { openApi } from "#modules/mod_http_api/rpc/openapi.ts";
import { fields, map } from "#modules/mod_http_api/rpc/shape.ts";
import { Table } from "#modules/mod_http_api/rpc/table.ts";

/** The commands are listed, and never run. */
const run = (): never => {
  throw new Error("it ran");
};
const files = defineGroup({
  help: "Files.",
  options: { flush: { type: "bool", aliases: ["f"], default: true, help: "Flush." } },
});
const commands: Commands = {
  add: readCommand({
    help: "Adds | files.",
    options: {
      chunker: { type: "string", aliases: ["s"], default: "size-262144", help: "Chunks." },
      "inline-limit": { type: "int", experimental: true, help: "Limit." },
      secret: { type: "bool", hidden: true, help: "Nobody sees it." },
    },
    file: { name: "path", required: true, many: true, help: "Files." },
    returns: stream(fields("AddedObject", { Name: "string", "Hash?": "string", Links: ["link"], More: map("uint64") })),
    run,
  }),
  files,
  "files/read": readCommand({
    help: "Reads.",
    group: files,
    deprecated: true,
    arguments: [
      { name: "path", required: true, help: "Path." },
      { name: "more", variadic: true, stdin: "lines", help: "More." },
    ],
    returns: raw,
    run,
  }),
  none: readCommand({
    help: "Nothing.",
    arguments: [{ name: "x", required: true, help: "X." }],
    returns: nothing,
    run,
  }),
  one: readCommand({ help: "One.", returns: value("string"), run }),
};
const small = new Table([commands]);

describe("the list of commands", () => {
  test("the list of commands is a tree, without flags except those of the root, unless they are requested", () => {
    assert.deepEqual(commandTree(small, false), {
      Name: "ipfs",
      Subcommands: [
        { Name: "add", Subcommands: [], Options: [] },
        { Name: "files", Subcommands: [{ Name: "read", Subcommands: [], Options: [] }], Options: [] },
        { Name: "none", Subcommands: [], Options: [] },
        { Name: "one", Subcommands: [], Options: [] },
      ],
      Options: commandTree(small, true).Options,
    });
  });

  test("the list of commands has flags with their aliases, except hidden ones", () => {
    const { Options, Subcommands } = commandTree(small, true);
    assert.deepEqual(
      Options.map(({ Names }) => Names.join(" ")),
      [
        "config c",
        "debug D",
        "help",
        "h",
        "local L",
        "offline",
        "api",
        "cid-base",
        "upgrade-cidv0-in-output",
        "encoding enc",
        "stream-channels",
        "timeout",
      ],
    );
    assert.deepEqual(Subcommands[0]?.Options, [{ Names: ["chunker", "s"] }, { Names: ["inline-limit"] }]);
    assert.deepEqual(Subcommands[1]?.Options, [{ Names: ["flush", "f"] }]);
  });

  test("the list of commands as text is sorted, one per line, without the flags of the root", () => {
    assert.deepEqual(commandLines(commandTree(small, true)), [
      "ipfs",
      "ipfs add",
      "ipfs add --chunker / ipfs add -s",
      "ipfs add --inline-limit",
      "ipfs files",
      "ipfs files --flush / ipfs files -f",
      "ipfs files read",
      "ipfs none",
      "ipfs one",
    ]);
  });
});

describe("the OpenAPI document", () => {
  const { paths, components } = JSON.parse(openApi(small));
  const parameter = (path: string, name: string) =>
    paths[path].post.parameters.find((each: { name?: string }) => each.name === name);

  test("the OpenAPI document has every command, but no groups", () => {
    assert.deepEqual(
      Object.keys(paths),
      ["add", "files/read", "none", "one"].map((path) => `/api/v0/${path}`),
    );
    assert.equal(paths["/api/v0/files/read"].post.deprecated, true);
    const ids = Object.values(paths).map((item) => (item as { post: { operationId: string } }).post.operationId);
    assert.deepEqual(ids, ["add", "filesRead", "none", "one"]);
  });

  test("the OpenAPI document describes flags, including those of groups, but not hidden ones", () => {
    assert.deepEqual(parameter("/api/v0/add", "chunker").schema, { type: "string", default: "size-262144" });
    assert.deepEqual(parameter("/api/v0/files/read", "flush").schema, { type: "boolean", default: true });
    assert.equal(parameter("/api/v0/add", "secret"), undefined);
  });

  test("the OpenAPI document has only references that can be resolved", () => {
    const references = JSON.stringify(paths).match(/#\/components\/[^"]+/g) ?? [];
    for (const reference of new Set(references)) {
      const [, , room = "", name = ""] = reference.split("/");
      assert.ok(components[room][name] !== undefined, reference);
    }
    assert.ok(references.length > 0);
  });

  test("the OpenAPI document describes arguments, body and response", () => {
    assert.deepEqual(parameter("/api/v0/none", "arg").schema, {
      type: "array",
      items: { type: "string" },
      minItems: 1,
      maxItems: 1,
    });
    assert.equal(parameter("/api/v0/none", "arg").required, true);
    assert.equal(parameter("/api/v0/files/read", "arg").required, false);
    assert.equal(paths["/api/v0/add"].post.requestBody.required, true);
    const link = { type: "object", properties: { "/": { type: "string" } }, required: ["/"] };
    assert.deepEqual(paths["/api/v0/add"].post.responses[200].content["application/json"].schema, {
      title: "AddedObject",
      type: "object",
      properties: {
        Name: { type: "string" },
        Hash: { type: "string" },
        Links: { type: "array", items: link },
        More: { type: "object", additionalProperties: { type: "integer", minimum: 0 } },
      },
      required: ["Name", "Links", "More"],
    });
  });
});

test("the reference pages name every command, argument and flag", () => {
  const pages = rpcPages(small);
  assert.deepEqual([...pages.keys()], ["README.md", "files.md", "single.md"]);
  const index = pages.get("README.md") ?? "";
  assert.match(index, /\| \[`files\/read`\]\(files\.md#filesread\) \| Reads\. Deprecated\. \| read \|\n/);
  assert.match(index, /\| \[`add`\]\(single\.md#add\) \| Adds \\\| files\. \| read \|\n/);
  const single = pages.get("single.md") ?? "";
  assert.match(single, /\| `chunker`, `s` \| string \| `size-262144` \| Chunks\. \|/);
  assert.match(single, /Limit\. Experimental\./);
  assert.match(
    single,
    /curl -X POST -F file=@FILE "http:\/\/127\.0\.0\.1:5280\/api\/v0\/add"\nmodhost rpc add PATH\.\.\.\n/,
  );
  assert.match(
    single,
    /values such as\n\n```json\n\{"Name":"…","Hash":"Qm\w+","Links":\[\{"\/":"Qm\w+"\}\],"More":\{"…":1\}\}\n```\n\nOmitted when empty: `Hash`\./,
  );
  assert.match(single, /api\/v0\/none\?arg=<x>"\nmodhost rpc none X\n/);
  assert.doesNotMatch(single, /Nobody/);
  const files = pages.get("files.md") ?? "";
  assert.match(files, /\| `more` \| optional, repeatable, also from the body \| More\. \|/);
  assert.match(files, /\| `flush`, `f` \| bool \| `true` \| Flush\. \|/);
});

test("differences of a command at level 0.43 are shown below it, including what was removed", () => {
  const stat = (more: { readonly arguments?: Command["arguments"]; readonly options?: Options }) =>
    readCommand({
      help: "Counts.",
      options: { raw: { type: "bool", help: "As it is." } },
      ...more,
      returns: nothing,
      run,
    });
  const same = { a: { type: "bool", help: "A.", since: "0.43" } } as const;
  const parts = {
    "block/stat": stat({}),
    "block/get": stat({ options: same }),
    dns: stat({}),
    dht: defineGroup({ help: "Query." }),
    "dht/get": stat({}),
    block: defineGroup({ help: "Blocks." }),
  };
  const kubo043 = {
    "block/stat": stat({ arguments: [{ name: "cid", required: true, help: "Which." }], options: same }),
    "block/get": stat({ options: { a: { type: "bool", help: "A." } } }),
  };
  const pages = rpcPages(new Table([parts], { kubo043: [kubo043] }));
  const block = pages.get("block.md") ?? "";
  assert.deepEqual(block.split("**At level 0.43:**").length, 2, "one of the two differs");
  assert.match(
    block,
    /0\.43:\*\*\n\n(\|.*\n)+\| `cid` \| required \| Which\. \|\n\n(\|.*\n)+\| `a` \| bool \|.*\n\nWithout the options `raw`\.\n$/,
  );
  assert.match(pages.get("single.md") ?? "", /At the level 0\.43 it does not exist: 404\./);
  assert.match(pages.get("dht.md") ?? "", /it does not exist: the failure `removed, use 'ipfs routing' instead`\./);
});

test("the real table is consistent", () => {
  const names = commandTree(table, false).Subcommands.map(({ Name }) => Name);
  assert.ok(names.includes("commands") && names.includes("version"));
  assert.doesNotThrow(() => JSON.parse(openApi(table)));
});
