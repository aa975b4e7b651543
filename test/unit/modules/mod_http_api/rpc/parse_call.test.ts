import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readParts } from "#core/http/index.ts";
import { type Commands, defineGroup, nothing, readCommand } from "#modules/mod_http_api/rpc/command.ts";
import { find, linesOf, loggable, parse, Refusal } from "#modules/mod_http_api/rpc/parse_call.ts";
import { Table } from "#modules/mod_http_api/rpc/table.ts";
import { multipart, type SentPart } from "../support.ts";

const run = () => undefined;
const group = defineGroup({
  help: "Files.",
  options: { flush: { type: "bool", aliases: ["f"], default: true, help: "Flush." } },
});
const path = { name: "ipfs-path", required: true, variadic: true, help: "Paths." } as const;

const commands: Commands = {
  cat: readCommand({
    help: "Reads.",
    arguments: [{ ...path, stdin: "lines" }],
    options: {
      offset: { type: "int64", aliases: ["o"], help: "Offset." },
      depth: { type: "int", default: -1, help: "Depth." },
      count: { type: "uint", help: "Count." },
      big: { type: "uint64", help: "Big." },
      ratio: { type: "float64", help: "Ratio." },
      quiet: { type: "bool", aliases: ["q"], help: "Quiet." },
      name: { type: "string", hiddenAliases: ["named"], help: "Name." },
      status: { type: "list", default: ["pinned"], help: "States." },
    },
    returns: nothing,
    run,
  }),
  get: readCommand({
    help: "Gets.",
    arguments: [{ name: "ipfs-path", required: true, stdin: "first", help: "Path." }],
    returns: nothing,
    run,
  }),
  version: readCommand({ help: "Version.", returns: nothing, run }),
  "version/deps": readCommand({ help: "Dependencies.", returns: nothing, run }),
  template: readCommand({
    help: "New.",
    arguments: [{ name: "template", help: "One." }],
    returns: nothing,
    run,
  }),
  shift: readCommand({
    help: "An optional argument before a required one.",
    arguments: [
      { name: "maybe", help: "Optional." },
      { name: "must", required: true, help: "Required." },
    ],
    returns: nothing,
    run,
  }),
  publish: readCommand({
    help: "Publishes.",
    arguments: [
      { name: "topic", required: true, help: "Topic." },
      { name: "data", required: true, variadic: true, stdin: "lines", bytes: true, help: "Data." },
    ],
    returns: nothing,
    run,
  }),
  service: readCommand({
    help: "Adds a service.",
    arguments: [
      { name: "service", required: true, help: "Name." },
      { name: "key", required: true, secret: true, help: "Key." },
    ],
    options: { password: { type: "string", secret: true, help: "Secret." } },
    returns: nothing,
    run,
  }),
  files: group,
  "files/write": readCommand({
    help: "Writes.",
    group,
    arguments: [{ name: "path", required: true, help: "Path." }],
    file: { name: "data", required: true, help: "Content." },
    returns: nothing,
    run,
  }),
};
const table = new Table([commands]);

async function* once(bytes: Buffer) {
  yield bytes;
}

interface Sent {
  readonly parts?: readonly SentPart[];
  readonly type?: string;
}

async function parsed(call: string, { parts, type }: Sent = {}) {
  const [at = "", query = ""] = call.split("?", 2);
  const found = find(table, at.split("/"));
  if (found === undefined) return undefined;
  const sent = multipart(parts ?? []);
  const contentType = type ?? (parts === undefined ? "" : sent.headers["Content-Type"]);
  return parse(found, query, { type: contentType, parts: () => readParts(once(sent.body), contentType) });
}

const refused = (call: string, message: string, sent?: Sent) =>
  assert.rejects(
    parsed(call, sent),
    (error) => (error instanceof Refusal && error.message === message) || assert.fail(`${call}: ${error}`),
  );

describe("the path of a command", () => {
  const reach: [path: string, command: string | undefined, args: string[]][] = [
    ["version", "version", []],
    ["version/deps", "version/deps", []],
    ["cat/Qm", "cat", ["Qm"]],
    ["cat/", "cat", [""]],
    ["files/write/x", "files/write", ["x"]],
    ["cat/a/b", undefined, []],
    ["version/x", "version", ["x"]],
    ["version/", "version", [""]],
    ["version/x/y", undefined, []],
    ["files/write/", "files/write", [""]],
    ["files/none", undefined, []],
    ["files/", undefined, []],
    ["none", undefined, []],
    ["VERSION", undefined, []],
    ["", undefined, []],
  ];
  for (const [path, command, args] of reach) {
    test(`${JSON.stringify(path)} is ${command ?? "none"}`, () => {
      const found = find(table, path.split("/"));
      assert.equal(found?.node.path, command);
      if (found !== undefined) assert.deepEqual(found.argument === undefined ? [] : [found.argument], args);
    });
  }

  test("a group by itself is found, and runs nothing", async () => {
    assert.deepEqual((await parsed("files?flush=0"))?.options, { flush: false, encoding: "json" });
  });
});

describe("arguments", () => {
  const given: [call: string, args: Record<string, unknown>][] = [
    ["cat?arg=a&arg=b", { "ipfs-path": ["a", "b"] }],
    ["cat/x?arg=a", { "ipfs-path": ["x", "a"] }],
    ["cat?arg", { "ipfs-path": [""] }],
    ["cat?arg=a+b%20c%2Fd", { "ipfs-path": ["a b c/d"] }],
    ["cat?arg=%zz&arg=b", { "ipfs-path": ["b"] }],
    ["cat?arg=a;arg=b", { "ipfs-path": ["a", "b"] }],
    ["cat?Arg=a&arg=b", { "ipfs-path": ["b"] }],
    ["get?arg=a&arg=b", { "ipfs-path": "a" }],
    ["template", {}],
    ["template?arg=", { template: "" }],
    ["shift?arg=a", { must: "a" }],
    ["shift?arg=a&arg=b", { maybe: "a", must: "b" }],
    ["publish?arg=t&arg=%ff%00", { topic: "t", data: [Buffer.from([255, 0])] }],
    ["publish?arg=t&arg=%C3%A4", { topic: "t", data: [Buffer.from("ä")] }],
  ];
  for (const [call, args] of given) {
    test(call, async () => assert.deepEqual((await parsed(call))?.arguments, args));
  }

  test("missing arguments are named, a file only once the values before it exist", async () => {
    await refused("cat", 'argument "ipfs-path" is required');
    await refused("publish?arg=t", 'argument "data" is required');
    await refused("files/write", 'argument "path" is required');
    await refused("files/write?arg=/x", "file argument 'data' is required");
    await refused("files/write", 'argument "path" is required', { parts: [{ content: "x" }] });
  });

  test("surplus values are counted without a name", async () => {
    const { arguments: args, given: values } = (await parsed("template?arg=a&arg=b")) ?? assert.fail();
    assert.deepEqual([args, values], [{ template: "a" }, ["a", "b"]]);
  });
});

describe("arguments from the body", () => {
  const lines = (content: string) => ({ parts: [{ content }] });

  test("all lines follow the values of the query", async () => {
    const call = await parsed("cat?arg=z", lines("a\nb\r\n\nc"));
    assert.deepEqual(call?.arguments, { "ipfs-path": ["z", "a", "b", "", "c"] });
  });

  test("only the first line is read, and only if the value is missing", async () => {
    assert.deepEqual((await parsed("get", lines("a\nb")))?.arguments, { "ipfs-path": "a" });
    assert.deepEqual((await parsed("get?arg=z", lines("a\nb")))?.arguments, { "ipfs-path": "z" });
  });

  test("bytes stay bytes", async () => {
    const call = await parsed("publish?arg=t", { parts: [{ content: Buffer.from([254, 10, 255]) }] });
    assert.deepEqual(call?.arguments, { topic: "t", data: [Buffer.from([254]), Buffer.from([255])] });
  });

  test("an empty part or no part leaves the value missing", async () => {
    await refused("get", 'argument "ipfs-path" is required', { parts: [] });
    await refused("cat", 'argument "ipfs-path" is required', lines(""));
  });
});

describe("the type of the body", () => {
  const types: [type: string, message: string][] = [
    ["", "file argument 'data' is required"],
    ["application/x-www-form-urlencoded", "file argument 'data' is required"],
    ["multipart/mixed; boundary=b", "file argument 'data' is required"],
    ["multipart/form-data", "no multipart boundary param in Content-Type"],
    ["MULTIPART/Form-Data", "no multipart boundary param in Content-Type"],
    ["multipart/form-data; boundary", "request Content-Type isn't multipart/form-data"],
    ["multipart/form-data; boundary=", "request Content-Type isn't multipart/form-data"],
    ["multipart/form-data; =b", "request Content-Type isn't multipart/form-data"],
  ];
  for (const [type, message] of types) {
    test(`${type || "none"}: ${message}`, () => refused("files/write?arg=/x", message, { type }));
  }

  test("an empty multipart body is a body", async () => {
    assert.equal((await parsed("files/write?arg=/x", { parts: [] }))?.path, "files/write");
  });
});

describe("flags", () => {
  const values: [query: string, name: string, value: unknown][] = [
    ["offset=10", "offset", 10],
    ["o=0x1f", "offset", 31],
    ["offset=-0b11", "offset", -3],
    ["offset=0o17", "offset", 15],
    ["offset=017", "offset", 15],
    ["offset=00", "offset", 0],
    ["offset=0", "offset", 0],
    ["offset=1_000", "offset", 1000],
    ["offset=0x_1F", "offset", 31],
    ["offset=%2B5", "offset", 5],
    ["offset=9223372036854775807", "offset", 2 ** 63],
    ["depth=2147483647", "depth", 2147483647],
    ["depth=-2147483648", "depth", -2147483648],
    ["count=4294967295", "count", 4294967295],
    ["big=18446744073709551615", "big", 2 ** 64],
    ["ratio=1.5e3", "ratio", 1500],
    ["ratio=.5", "ratio", 0.5],
    ["ratio=-inf", "ratio", Number.NEGATIVE_INFINITY],
    ["quiet", "quiet", true],
    ["q=", "quiet", true],
    ["quiet=TRUE", "quiet", true],
    ["quiet=T", "quiet", true],
    ["quiet=0", "quiet", false],
    ["quiet=f", "quiet", false],
    ["name=", "name", ""],
    ["named=x", "name", "x"],
    ["status=a&status=b,c", "status", ["a", "b,c"]],
    ["unknown=1&unknown=2", "unknown", undefined],
    ["", "depth", -1],
    ["", "status", ["pinned"]],
    ["", "encoding", "json"],
    ["enc=text", "encoding", "text"],
    ["", "offset", undefined],
  ];
  for (const [query, name, value] of values) {
    test(`${query || "nothing"}: ${name} is ${JSON.stringify(value)}`, async () => {
      assert.deepEqual((await parsed(`cat?arg=x&${query}`))?.options[name], value);
    });
  }

  const wrong: [query: string, value: string, type: string, name: string][] = [
    ["offset=1.5", 'value "1.5"', "int64", "offset"],
    ["o=", "empty value", "int64", "offset"],
    ["offset=08", 'value "08"', "int64", "offset"],
    ["offset=1__0", 'value "1__0"', "int64", "offset"],
    ["offset=1_", 'value "1_"', "int64", "offset"],
    ["offset=_1", 'value "_1"', "int64", "offset"],
    ["offset=+5", 'value " 5"', "int64", "offset"],
    ["offset=9223372036854775808", 'value "9223372036854775808"', "int64", "offset"],
    ["depth=2147483648", 'value "2147483648"', "int", "depth"],
    ["count=-1", 'value "-1"', "uint", "count"],
    ["count=%2B1", 'value "+1"', "uint", "count"],
    ["ratio=x", 'value "x"', "float64", "ratio"],
    ["quiet=yes", 'value "yes"', "bool", "quiet"],
    ["quiet=a%0a%22%C3%A9", 'value "a\\n\\"é"', "bool", "quiet"],
  ];
  for (const [query, value, type, name] of wrong) {
    test(`${query} is refused`, () =>
      refused(`cat?arg=x&${query}`, `could not convert ${value} to type "${type}" (for option "-${name}")`));
  }

  test("a scalar given twice under one name is refused with both values", () =>
    refused("cat?o=1&o=2", "expected key offset to have only a single value, received [1 2]"));

  test("flags of the group reach its commands", async () => {
    const call = await parsed("files/write?arg=/x&f=false", { parts: [{ content: "x" }] });
    assert.deepEqual(call?.options, { flush: false, encoding: "json" });
  });

  test("an invalid flag is reported before a missing argument, and a missing file before an invalid flag", async () => {
    await refused("cat?quiet=x", 'could not convert value "x" to type "bool" (for option "-quiet")');
    await refused("files/write?arg=/x&flush=x", "file argument 'data' is required");
  });
});

test("arguments in a body have limits on their length and total", async () => {
  const megabyte = Buffer.alloc(1024 * 1024, "a");
  const read = async (piece: Uint8Array, count: number) => {
    let lines = 0;
    const given = Array.from({ length: count }, () => piece);
    for await (const _ of linesOf(given)) lines += 1;
    return lines;
  };
  assert.equal(await read(megabyte, 2), 1);
  await assert.rejects(read(megabyte, 3), { message: "an argument of more than 2097152 bytes is not taken" });
  const short = Buffer.from("QmcL\n".repeat(100_000));
  assert.equal(await read(short, 9), 900_000);
  await assert.rejects(read(short, 10), { message: "arguments of more than 67108864 bytes are not taken" });
});

test("secrets are masked", async () => {
  const call = (await parsed("service?arg=mine&arg=hush&password=hush&timeout=1s")) ?? assert.fail();
  assert.deepEqual(loggable(call), {
    args: ["mine", "***"],
    options: { password: "***", timeout: "1s", encoding: "json" },
  });
});

describe("an inconsistent declaration", () => {
  const command = (more: object) => readCommand({ help: "x", returns: nothing, run, ...more });
  const wrong: [string, readonly Commands[], RegExp][] = [
    ["twice", [{ a: command({}) }, { a: command({}) }], /a is declared twice/],
    ["without a group above", [{ "a/b": command({}) }], /a\/b has no group/],
    [
      "an option of the globals",
      [{ a: command({ options: { enc: { type: "bool", help: "x" } } }) }],
      /option enc of a/,
    ],
    [
      "a body argument that is not last",
      [{ a: command({ arguments: [{ name: "x", stdin: "first", help: "x" }, path] }) }],
      /x of a/,
    ],
    [
      "another group",
      [{ files: group, a: defineGroup({ help: "A" }), "a/b": command({ group }) }],
      /a\/b names another/,
    ],
  ];
  for (const [what, parts, message] of wrong) test(what, () => assert.throws(() => new Table(parts).check(), message));
});
