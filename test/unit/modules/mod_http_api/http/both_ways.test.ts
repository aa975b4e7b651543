/**
 * Response lines arrive while the body is still being sent, and wait for a client that sends all of
 * it first.
 */
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Node } from "modhost/node";
import { type Commands, stream, writeCommand } from "#modules/mod_http_api/rpc/command.ts";
import { fields } from "#modules/mod_http_api/rpc/shape.ts";
import { eventually } from "#test/support/eventually.ts";
import { startHost, type TestHost } from "#test/support/host.ts";
import { RawConnection } from "#test/support/raw.ts";
import { type RpcHost, startRpc } from "../commands/support.ts";
import { type ApiHost, startApi } from "../support.ts";
import { bodyType, closing, part, Talk, type Way, ways } from "./talk.ts";

const COUNT = 5;
const contents = Array.from({ length: COUNT }, (_, at) => `the content of block ${at}`);

/** Pieces as they are measured: each ends with the line break before the next delimiter. */
const pieces = (names: readonly string[] = []) => [...contents.map((content, at) => part(content, names[at])), closing];

/** Returns the lines, over each way that the host offers. */
async function lineByLine(
  host: Pick<TestHost, "http" | "https">,
  path: string,
  { named = false, over = ways }: { readonly named?: boolean; readonly over?: readonly Way[] } = {},
): Promise<string[][]> {
  const names = named ? contents.map((_, at) => `file${at}`) : [];
  const all = pieces(names);
  const length = all.reduce((sum, piece) => sum + piece.length, 0);
  return Promise.all(
    over.map(async (way) => {
      using talk = new Talk({ way, host, path, length });
      for (const [at, piece] of all.entries()) {
        await talk.write(piece);
        // The delimiter that ends a part comes with the next piece.
        await talk.until(Math.min(at, COUNT - 1));
      }
      talk.end();
      await talk.whole();
      assert.equal(talk.status, 200, way);
      assert.equal(talk.trailers["x-stream-error"], undefined, way);
      return [...talk.lines];
    }),
  );
}

describe("response lines arrive while the body is being sent", () => {
  let host: RpcHost;
  before(async () => {
    host = await startRpc({ https_ports: [0], api_trusted_callers: ["127.0.0.1"] });
  });
  after(() => host?.stop());

  test("block/put sends n - 1 of n lines before the last piece is sent, over each way", async () => {
    for (const lines of await lineByLine(host, "block/put?pin=false")) {
      assert.deepEqual(
        lines.map((line) => JSON.parse(line).Size),
        contents.map((content) => content.length),
      );
    }
  });

  test("add responds to each file before the next one is sent, over each way", async () => {
    for (const lines of await lineByLine(host, "add?pin=true", { named: true })) {
      assert.deepEqual(
        lines.map((line) => JSON.parse(line).Name),
        contents.map((_, at) => `file${at}`),
      );
    }
  });

  test("block/put responds early through the reverse proxy as well", async () => {
    await using proxy = await startHost({
      config: {
        modules_enabled: ["http", "http_proxy"],
        http_proxy: { node: { upstreams: [`http://127.0.0.1:${host.http}`], path: "keep" } },
        http_paths: { node: "/api/v0" },
      },
    });
    const over = ways.filter((way) => way !== "HTTP/2");
    for (const lines of await lineByLine(proxy, "block/put?pin=false", { over })) assert.equal(lines.length, COUNT);
  });

  test("the connection stays usable afterwards, if the client used Expect and sent trailers", async () => {
    using connection = await RawConnection.open(host.http, { timeout: 120_000 });
    const head = (path: string, more: string) =>
      `POST /api/v0/${path} HTTP/1.1\r\nHost: 127.0.0.1:${host.http}\r\n${more}\r\n`;
    const type = Object.entries(bodyType).map(([name, value]) => `${name}: ${value}\r\n`);
    connection.write(head("block/put?pin=false", `${type}Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n`));
    await connection.until(/^HTTP\/1.1 100 Continue\r\n\r\n/);
    for (const [at, piece] of pieces().entries()) {
      connection.write(`${piece.length.toString(16)}\r\n${piece.toString("latin1")}\r\n`);
      await connection.until(new RegExp(`(?:"Size":[^$]*){${Math.min(at, COUNT - 1)}}`));
    }
    connection.write("0\r\nX-Sum: 1\r\n\r\n");
    const [, responded = ""] = await connection.until(/^(.*\r\n0\r\n(?:X-[^\r]*\r\n)*\r\n)$/s);
    assert.equal(responded.match(/"Size":/g)?.length, COUNT);
    connection.write(head("version", "Content-Length: 0\r\n"));
    await connection.until(/"Version":"0.9.0"/);
    assert.equal(connection.text.match(/HTTP\/1.1 200 OK/g)?.length, 2);
  });
});

describe("a caller that pauses in the middle of a body", () => {
  /** `http_progress_timeout` in seconds. It is not shorter because a busy machine may stall. */
  const PERIOD = 1;
  const short = { https_ports: [0], http_progress_timeout: PERIOD };
  const over: readonly Way[] = ["HTTP/1.1 in chunks", "HTTP/2"];

  const [first, second, ...rest] = pieces() as [Buffer, Buffer, ...Buffer[]];

  async function begun(host: RpcHost, way: Way): Promise<Talk> {
    const talk = new Talk({ way, host, path: "block/put?pin=false" });
    await talk.write(Buffer.concat([first, second.subarray(0, 40)]));
    await talk.until(1);
    return talk;
  }

  test("a caller may pause for longer than a slow client", async () => {
    await using host = await startRpc(short);
    await Promise.all(
      over.map(async (way) => {
        using talk = await begun(host, way);
        await sleep(3 * PERIOD * 1000);
        await talk.write(Buffer.concat([second.subarray(40), ...rest]));
        talk.end();
        await talk.whole();
        assert.deepEqual([talk.lines.length, talk.trailers["x-stream-error"]], [COUNT, undefined], way);
      }),
    );
  });

  test("a caller may pause no longer than the option api_upload_pause allows", async () => {
    await using host = await startRpc({ ...short, api_upload_pause: PERIOD });
    await Promise.all(
      over.map(async (way) => {
        using talk = await begun(host, way);
        await talk.whole();
        assert.equal(talk.lines.length, 1, way);
        assert.equal(talk.trailers["x-stream-error"], "The request body did not arrive fast enough", way);
      }),
    );
  });
});

/** A line so long that a few of them exceed all buffers on the way. */
const LONG = "x".repeat(64 * 1024);
const MANY = 400;

describe("a client that reads nothing before it has sent everything", () => {
  let host: ApiHost;
  let impatient: ApiHost;
  let taken = 0;
  const commands = {
    long: writeCommand({
      help: "Answers each part by a long line.",
      file: { name: "data", many: true, help: "Parts." },
      returns: stream(fields("Long", { At: "int", Text: "string" })),
      async *run({ files }) {
        for await (const { body } of files.plain("files")) {
          for await (const _ of body);
          taken += 1;
          yield { At: taken, Text: LONG };
        }
      },
    }),
  } satisfies Commands;
  before(async () => {
    const lowLevel = {
      get scratch() {
        return join(host.folder, "scratch");
      },
      log: { isWritten: () => false },
    };
    const node = { lowLevel } as unknown as Node;
    host = await startApi([commands], { node }, { https_ports: [0] });
    impatient = await startApi([commands], { node, uploadPause: 3600 }, { http_progress_timeout: 2 });
  });
  after(() => Promise.all([host, impatient].map((each) => each?.stop())));

  for (const way of ways) {
    test(`over ${way}: the body is accepted completely, and the whole response follows`, async () => {
      taken = 0;
      const piece = part("x");
      using talk = new Talk({ way, host, path: "long", length: MANY * piece.length + closing.length });
      talk.hold();
      for (let at = 0; at < MANY; at += 1) await talk.write(piece);
      await talk.write(closing);
      talk.end();
      await eventually("all parts are accepted", () => taken === MANY);
      talk.read();
      await talk.whole();
      assert.deepEqual(
        talk.lines.map((line) => JSON.parse(line).At),
        Array.from({ length: MANY }, (_, at) => at + 1),
      );
    });
  }

  test("a client that reads nothing may also pause meanwhile", async () => {
    taken = 0;
    using talk = new Talk({ way: "HTTP/1.1 in chunks", host: impatient, path: "long" });
    talk.hold();
    const piece = part("x");
    for (let at = 0; at < MANY; at += 1) await talk.write(piece);
    await eventually("all parts except the last are accepted", () => taken === MANY - 1);
    await sleep(5000);
    talk.read();
    await talk.write(closing);
    talk.end();
    await talk.whole();
    assert.equal(talk.lines.length, MANY);
  });

  test("a disconnect of a client that reads nothing ends its call and removes its buffered lines", async () => {
    taken = 0;
    const talk = new Talk({ way: "HTTP/1.1 in chunks", host, path: "long" });
    talk.hold();
    for (let at = 0; at < MANY; at += 1) await talk.write(part("x"));
    await eventually("all parts except the last are accepted", () => taken === MANY - 1);
    talk[Symbol.dispose]();
    await eventually("no call is running", () => host.commands.list().every(({ end }) => end !== undefined));
    assert.deepEqual(host.faults, []);
    assert.deepEqual(await readdir(join(host.folder, "scratch")), []);
  });
});
