import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, describe, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import {
  bytes,
  type Commands,
  defineGroup,
  nothing,
  raw,
  readCommand,
  stream,
  value,
} from "#modules/mod_http_api/rpc/command.ts";
import { fields, map } from "#modules/mod_http_api/rpc/shape.ts";
import { NodeError } from "#node/util/errors.ts";
import { RawConnection } from "#test/support/raw.ts";
import { type ApiHost, ask, multipart, replyOf, startApi } from "../support.ts";

const item = fields("Item", { Name: "string", Size: "int64" });
const cid = (name: string) => ({ Name: name, Size: name.length });
/** Events that the commands of this test record. */
const seen: string[] = [];
let produced = 0;
let blocked = Promise.withResolvers<void>();

async function* items(names: string | undefined, failure?: string) {
  for (const name of (names ?? "").split(",").filter((each) => each !== "")) yield cid(name);
  if (failure !== undefined) throw new NodeError("ARGUMENT_INVALID", failure);
}

async function* untilAborted(signal: AbortSignal, first?: string) {
  try {
    if (first !== undefined) yield cid(first);
    await once(signal, "abort");
    signal.throwIfAborted();
  } finally {
    seen.push("ended");
    blocked.resolve();
  }
}

const texts = {
  names: { type: "string", help: "Names." },
  fail: { type: "string", help: "Text of a failure." },
} as const;
const looks = { help: "Help." } as const;
const commands: Commands = {
  one: readCommand({
    ...looks,
    options: texts,
    returns: value(item),
    run({ options, announce }) {
      if (options.fail?.startsWith("announced ") === true) announce(42);
      if (options.fail !== undefined) throw new NodeError("ARGUMENT_INVALID", options.fail);
      return { Name: options.names ?? "", Size: 7 };
    },
    text: ({ Name, Size }) => `${Name} ${Size}\n`,
  }),
  withArgument: readCommand({
    ...looks,
    arguments: [{ name: "what", required: true, stdin: "first", help: "A text." }],
    returns: value(item),
    run: ({ arguments: { what } }) => cid(what),
  }),
  client: readCommand({
    ...looks,
    returns: nothing,
    run() {
      throw new NodeError("OPTION_CONFLICT", "one or the other", { kind: "client" });
    },
  }),
  broken: readCommand({
    ...looks,
    returns: nothing,
    run() {
      throw new TypeError("broken");
    },
  }),
  many: readCommand({
    ...looks,
    options: texts,
    returns: stream(item),
    run: ({ options }) => items(options.names, options.fail),
    text: ({ Name }, _call, previous) => `${previous === undefined ? "first" : previous.Name}>${Name}\n`,
  }),
  textless: readCommand({ ...looks, returns: value(item), run: () => cid("x") }),
  bare: readCommand({ ...looks, returns: value("string"), run: () => "plain" }),
  big: readCommand({
    ...looks,
    returns: value("any"),
    run: () => ({ Big: 2n ** 63n, Far: 1e21, Text: "<a&b>\u2028" }),
  }),
  mapped: readCommand({ ...looks, returns: value(map("string")), run: () => ({ a: "b" }) }),
  raw: readCommand({
    ...looks,
    options: { ...texts, size: { type: "int", help: "Bytes." } },
    returns: raw,
    run({ options: { size = 0, fail } }) {
      async function* content() {
        for (let left = size; left > 0; left -= 65536) {
          yield Buffer.alloc(Math.min(left, 65536), "x");
          produced += 65536;
        }
        if (fail !== undefined) throw new NodeError("ARGUMENT_INVALID", fail);
      }
      return bytes(content(), size > 0 ? { length: size } : {});
    },
  }),
  none: readCommand({ ...looks, returns: nothing, run: () => undefined }),
  own: readCommand({
    ...looks,
    returns: value("string"),
    run: () => "x",
    encodings: { protobuf: { type: "application/protobuf", encode: (text) => Buffer.from(`p:${text}`) } },
  }),
  wait: readCommand({
    ...looks,
    options: { first: { type: "string", help: "A value before." } },
    returns: stream(item),
    run: ({ signal, options }) => untilAborted(signal, options.first),
  }),
  tail: readCommand({
    ...looks,
    returns: stream(item),
    eager: true,
    run: ({ signal }) => untilAborted(signal),
  }),
  upload: readCommand({
    ...looks,
    file: { name: "path", required: true, many: true, help: "Files." },
    returns: stream(item),
    async *run({ files }) {
      for await (const entry of files.entries()) {
        let size = 0;
        if (entry.kind === "file") for await (const piece of entry.body) size += piece.length;
        yield { Name: entry.name, Size: size };
      }
    },
  }),
  unread: readCommand({
    ...looks,
    file: { name: "path", required: true, help: "File." },
    returns: nothing,
    run() {
      throw new NodeError("BUSY", "not now");
    },
  }),
  group: defineGroup({ help: "A group." }),
};

const announced = "X-Stream-Output, X-Chunked-Output, X-Content-Length";
const common = {
  server: "go-ipfs/0.9.0",
  "x-content-type-options": "nosniff",
  vary: "Origin",
  "access-control-allow-headers": announced,
  "access-control-expose-headers": announced,
  trailer: "X-Stream-Error",
  "transfer-encoding": "chunked",
};

let host: ApiHost;
before(async () => {
  host = await startApi([commands], {
    headers: () => ({ "X-Own": ["1", "2"], "Access-Control-Allow-Headers": ["X-No"] }),
  });
});
after(() => host.stop());

const own = (headers: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    Object.entries(headers).filter(([name]) => name !== "date" && name !== "connection" && name !== "x-own"),
  );

async function check(path: string, status: number, headers: Record<string, string>, body: string, trailer?: string) {
  const reply = await ask(host.http, path);
  assert.deepEqual(
    { status: reply.status, body: reply.body, headers: own(reply.headers), trailers: reply.trailers },
    {
      status,
      body,
      headers: { ...common, ...headers },
      trailers: trailer === undefined ? {} : { "x-stream-error": trailer },
    },
  );
  assert.equal(reply.headers["x-own"], "1, 2");
}

const json = { "content-type": "application/json" };
const text = { "content-type": "text/plain" };
const xml = { "content-type": "application/xml" };
const chunked = { "x-chunked-output": "1" };

describe("response forms", () => {
  test("one value", () => check("one?names=a", 200, json, '{"Name":"a","Size":7}\n'));
  test("many values", () =>
    check("many?names=a,bc", 200, { ...json, ...chunked }, '{"Name":"a","Size":1}\n{"Name":"bc","Size":2}\n'));
  test("an empty stream of values", () => check("many", 200, { ...json, ...chunked }, ""));
  test("nothing", () => check("none", 200, { ...json, ...chunked }, ""));
  test("a bare group", () => check("group", 200, { ...json, ...chunked }, ""));
  test("bytes", () =>
    check("raw?size=5&encoding=xml", 200, { ...text, "x-stream-output": "1", "x-content-length": "5" }, "xxxxx"));
  test("no bytes", () => check("raw", 200, { ...text, "x-stream-output": "1" }, ""));
  test("a chunk contains whole values", async () => {
    // Node.js 26 joins pieces that are written in one turn.
    const { chunks } = await ask(host.http, "many?names=a,b");
    for (const chunk of chunks) assert.match(chunk, /^(?:\{"Name":"[ab]","Size":1\}\n)+$/);
    assert.equal(chunks.join(""), '{"Name":"a","Size":1}\n{"Name":"b","Size":1}\n');
  });
});

describe("encodings", () => {
  test("text", () => check("one?names=a&encoding=text", 200, text, "a 7\n"));
  test("text of many values", () => check("many?names=a,b&enc=text", 200, { ...text, ...chunked }, "first>a\na>b\n"));
  test("text of a command without a text form", () =>
    check("textless?encoding=text", 200, text, '{"Name":"x","Size":1}'));
  test("text of a string", () => check("bare?encoding=text", 200, text, "plain"));
  test("textnl", () => check("bare?encoding=textnl", 200, text, "plain\n"));
  test("xml", () => check("one?names=%3C&encoding=xml", 200, xml, "<Item><Name>&lt;</Name><Size>7</Size></Item>"));
  test("xml of a map", () => check("mapped?encoding=xml", 200, xml, "", "xml: unsupported type: map"));
  test("an encoding of a single command", () =>
    check("own?encoding=protobuf", 200, { "content-type": "application/protobuf" }, "p:x"));
  test("JSON as Go writes it", () =>
    check("big", 200, json, '{"Big":9223372036854775808,"Far":1e+21,"Text":"\\u003ca\\u0026b\\u003e\\u2028"}\n'));
  for (const name of ["odd", "", "JSON", "protobuf"]) {
    test(`${name || "an empty name"} is refused`, async () => {
      const { status, headers, body } = await ask(host.http, `one?encoding=${name}`);
      assert.deepEqual([status, body], [400, `invalid encoding: ${name}\n`]);
      assert.deepEqual(
        [headers["content-type"], headers.server, headers.trailer],
        ["text/plain; charset=utf-8", "go-ipfs/0.9.0", undefined],
      );
    });
  }
});

describe("errors before the first value", () => {
  const message = 'no \u003cluck\u003e "here"';
  const query = `fail=${encodeURIComponent(message)}`;
  const body = '{"Message":"no \\u003cluck\\u003e \\"here\\"","Code":0,"Type":"error"}\n';
  test("json", () => check(`one?${query}`, 500, json, body));
  test("an error of a stream before its first value has its own status", () => check(`many?${query}`, 500, json, body));
  test("text", () => check(`one?${query}&encoding=text`, 500, text, message));
  test("xml", () =>
    check(
      `one?${query}&encoding=xml`,
      500,
      xml,
      "<Error><Message>no &lt;luck&gt; &#34;here&#34;</Message><Code>0</Code></Error>",
    ));
  test("the client's fault", () =>
    check("client", 400, json, '{"Message":"one or the other","Code":1,"Type":"error"}\n'));
  test("an error before the first value keeps an announced length", () =>
    check(
      "one?fail=announced%20x",
      500,
      { ...json, "x-content-length": "42" },
      '{"Message":"announced x","Code":0,"Type":"error"}\n',
    ));
  test("an error that is a bug is reported", async () => {
    host.faults.length = 0;
    await check("broken", 500, json, '{"Message":"broken","Code":0,"Type":"error"}\n');
    assert.deepEqual(host.faults.map(String), ["TypeError: broken"]);
  });
});

describe("errors after the first value", () => {
  test("an error after the first value ends a stream", () =>
    check("many?names=a&fail=late", 200, { ...json, ...chunked }, '{"Name":"a","Size":1}\n', "late"));
  test("an error ends a body of bytes, even before the first byte", () =>
    check("raw?fail=late", 200, { ...text, "x-stream-output": "1" }, "", "late"));
  test("an error in the trailer is one line of UTF-8", async () => {
    const { trailers } = await ask(host.http, "many?names=a&fail=%C3%A4%0Ab");
    assert.equal(Buffer.from(trailers["x-stream-error"] ?? "", "latin1").toString(), "ä b");
  });
  test("an error after the first value is lost over HTTP/1.0, which has no trailers", async () => {
    using connection = await RawConnection.open(host.http);
    connection.write("POST /api/v0/many?names=a&fail=late HTTP/1.0\r\nHost: localhost\r\n\r\n");
    const { status, body, headers } = replyOf(await connection.end());
    assert.deepEqual([status, body, headers.trailer], [200, '{"Name":"a","Size":1}\n', undefined]);
  });
});

describe("time limits", () => {
  const message = "context deadline exceeded";
  test("a time limit before the first value is an error", () =>
    check("wait?timeout=20ms", 500, json, `{"Message":"${message}","Code":0,"Type":"error"}\n`));
  test("a time limit after the first value is in the trailer", () =>
    check("wait?first=a&timeout=20ms", 200, { ...json, ...chunked }, '{"Name":"a","Size":1}\n', message));
  test("a command that ignores the signal runs to its end", () =>
    check("one?timeout=-1s", 200, json, '{"Name":"","Size":7}\n'));
  test("a long one", () => check("one?timeout=100000h", 200, json, '{"Name":"","Size":7}\n'));
  test("an empty one counts as not given", () => check("one?timeout=", 200, json, '{"Name":"","Size":7}\n'));
  for (const [given, shown] of [
    ["1x", "1x"],
    ["5", "5"],
  ] as const) {
    test(`${JSON.stringify(given)} is refused`, async () => {
      const { status, body } = await ask(host.http, `one?timeout=${given}`);
      assert.deepEqual([status, body], [400, `invalid timeout: ${shown}\n`]);
    });
  }
  test("apply to an upload that does not arrive", async () => {
    using connection = await RawConnection.open(host.http);
    const { headers } = multipart([]);
    connection.write(
      `POST /api/v0/upload?timeout=30ms HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\nContent-Type: ${headers["Content-Type"]}\r\n\r\n`,
    );
    await connection.until(new RegExp(message));
  });
  test("apply to an argument that was to arrive in the body", async () => {
    using connection = await RawConnection.open(host.http);
    const { headers } = multipart([]);
    connection.write(
      `POST /api/v0/withArgument?timeout=30ms HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\nContent-Type: ${headers["Content-Type"]}\r\n\r\n`,
    );
    await connection.until(new RegExp(`400 Bad Request.*${message}`, "s"));
  });
});

describe("a disconnect", () => {
  test("a disconnect ends the command, whatever it waits for", async () => {
    for (const path of ["wait?first=a", "tail"]) {
      blocked = Promise.withResolvers<void>();
      seen.length = 0;
      const connection = await RawConnection.open(host.http);
      connection.write(`POST /api/v0/${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n`);
      await connection.until(/X-Chunked-Output: 1\r\n.*\r\n\r\n/s);
      assert.equal(host.commands.list().at(-1)?.end, undefined);
      connection.destroy();
      await blocked.promise;
      assert.deepEqual(seen, ["ended"]);
    }
  });

  test("a reader that does not read stops production without a disconnect", async () => {
    const size = 500 * 1024 * 1024;
    produced = 0;
    using connection = await RawConnection.open(host.http);
    connection.write(`POST /api/v0/raw?size=${size} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n`);
    await connection.until(/X-Content-Length: \d+/);
    connection.socket.pause();
    for (let turn = 0; turn < 500; turn += 1) await setImmediate();
    assert.ok(produced < size / 2, `${produced} bytes were made`);
  });
});

describe("uploads", () => {
  const parts = [
    { filename: "a", content: "12345" },
    { filename: "b", content: "1" },
  ];
  const lines = '{"Name":"a","Size":5}\n{"Name":"b","Size":1}\n';

  test("each file is reported once it is complete, while the rest is still arriving", async () => {
    const { headers, body } = multipart(parts);
    using connection = await RawConnection.open(host.http);
    const half = body.indexOf('filename="b"');
    connection.write(
      `POST /api/v0/upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\nContent-Type: ${headers["Content-Type"]}\r\nConnection: close\r\n\r\n`,
    );
    connection.write(body.subarray(0, half));
    await connection.until(/"Name":"a"/);
    connection.write(body.subarray(half));
    assert.equal(replyOf(await connection.end()).body, lines);
  });

  test("a truncated body ends in the trailer, after the partial last file", async () => {
    const reply = await ask(host.http, "upload", multipart(parts, { cut: true }));
    assert.deepEqual([reply.body, reply.trailers["x-stream-error"]], [lines, "multipart: NextPart: EOF"]);
  });

  test("an empty body is an error of its own", async () => {
    const reply = await ask(host.http, "upload", { headers: multipart([]).headers });
    assert.deepEqual([reply.status, JSON.parse(reply.body).Message], [500, "multipart: NextPart: EOF"]);
  });

  test("an early error is readable, however much is still to be sent", async () => {
    const { headers, body } = multipart([{ filename: "a", content: Buffer.alloc(3_000_000) }]);
    const reply = await ask(host.http, "unread", { headers, body });
    assert.deepEqual([reply.status, reply.headers.connection], [500, "close"]);
  });
});

test("running and finished commands are logged, with their defaults", async () => {
  host.commands.clear();
  await ask(host.http, "one?names=a&arg=b");
  const [entry] = host.commands.list();
  assert.deepEqual([entry?.command, entry?.args, entry?.options], ["one", ["b"], { names: "a", encoding: "json" }]);
  assert.ok(entry?.end !== undefined && entry.end >= entry.start);
});

test("over HTTP/2, a late error is also in the trailers", async () => {
  await using secure = await startApi([commands], {}, { https_ports: [0] });
  const call = { method: "POST", path: "/api/v0/many?names=a&fail=late", body: "" };
  const reply = await secure.client("HTTP/2").request(call);
  assert.deepEqual([reply.status, reply.text], [200, '{"Name":"a","Size":1}\n']);
  assert.deepEqual([reply.header("trailer"), reply.trailers["x-stream-error"]], ["X-Stream-Error", "late"]);
});
