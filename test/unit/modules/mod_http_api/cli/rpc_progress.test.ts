/** Presenters with progress, as a user at a terminal sees them, and as a pipe does. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { PassThrough, Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import type { CommandContext } from "#core/cli/command.ts";
import { Progress } from "#core/cli/progress.ts";
import type { Call } from "#modules/mod_http_api/cli/rpc/parse.ts";
import type { Presenter } from "#modules/mod_http_api/cli/rpc/presenters.ts";
import type { Server } from "#modules/mod_http_api/cli/rpc/server.ts";
import { Session } from "#modules/mod_http_api/cli/rpc/session.ts";
import { addPins, collectGarbage, colouredJson, countLines } from "#modules/mod_http_api/cli/rpc/show_progress.ts";
import type { RpcCommand } from "#modules/mod_http_api/cli/rpc/surface.ts";
import { folderOf } from "#test/unit/core/module/support.ts";

const stat = { path: "repo/stat", returns: "value" } as RpcCommand;
const commands = new Map([["repo/stat", stat]]);

interface Seen {
  readonly text: string;
  readonly stderr: string;
  /** Options of the request. */
  readonly requested: Readonly<Record<string, string | undefined>>;
}

/**
 * Returns what a presenter prints for these lines. `sizes` are the sizes of the repo, one after the
 * other.
 */
async function seen(
  presenter: Presenter,
  lines: readonly string[],
  { isTTY = true, sizes = [0], env = { NO_COLOR: "1" } as Record<string, string>, options = [] as string[] } = {},
): Promise<Seen> {
  const stdout = Object.assign(new PassThrough(), { isTTY });
  const stderr = Object.assign(new PassThrough(), { isTTY });
  let text = "";
  let requested = {};
  const session = {
    context: { stdout, stderr, env },
    send: async (call: Call) => {
      if (call.command !== stat)
        requested = Object.fromEntries([...call.options].map(([name, [value]]) => [name, value]));
      const RepoSize = sizes.length > 1 ? sizes.shift() : sizes[0];
      const body = call.command === stat ? [JSON.stringify({ RepoSize })] : lines.map((line) => `${line}\n`);
      return { status: 200, headers: {}, body: Readable.from(body.map(Buffer.from)), late: () => undefined };
    },
    write: async (piece: string | Uint8Array) => void (text += Buffer.from(piece as string).toString()),
    progress: () => (isTTY ? new Progress(stderr as unknown as NodeJS.WriteStream, undefined) : undefined),
  } as unknown as Session;
  const command = { path: "x", returns: "stream" };
  const call = { command, arguments: [], files: [], options: new Map(options.map((name) => [name, ["true"]])) };
  await presenter(session, call as unknown as Call);
  return { text, requested, stderr: stripVTControlCharacters(written(stderr)) };
}

/** Returns everything that was written to a stream. */
function written(stream: PassThrough): string {
  return String(stream.read(stream.readableLength) ?? "");
}

describe("a command that takes long", () => {
  test("repo gc shows how much it removes and frees, and what failed; in a pipe it prints a line for each block", async () => {
    const lines = ['{"Key":{"/":"Qa"}}', '{"Key":{"/":"Qb"}}', '{"Key":null,"Error":"no \\u001b[2Jroom"}'];
    const people = await seen(collectGarbage(commands), lines, { sizes: [5_000_000, 2_000_000] });
    assert.equal(people.text, "2 blocks removed, 3.0 MB freed, 1 error\n");
    assert.match(people.stderr, / 1 block removed, 0 B freed/);
    assert.match(people.stderr, /Error: no \\x1b\[2Jroom\n/);
    for (const other of [{ isTTY: false }, { options: ["quiet"] }]) {
      const piped = await seen(collectGarbage(commands), ["removed Qa"], other);
      assert.deepEqual([piped.text, piped.requested.encoding], ["removed Qa\n", "text"]);
    }
  });

  test("pin add counts blocks, and then prints what the server sends in a pipe", async () => {
    const people = await seen(addPins, ["{}", '{"Progress":1200}', '{"Pins":["Qa","Qb"]}']);
    assert.equal(people.requested.progress, "true");
    assert.equal(people.text, "pinned Qa recursively\npinned Qb recursively\n");
    assert.match(people.stderr, /looking for blocks/);
    const piped = await seen(addPins, ["pinned Qa recursively"], { isTTY: false });
    assert.deepEqual([piped.text, piped.requested], ["pinned Qa recursively\n", { encoding: "text" }]);
  });

  test("refs reports the number of lines at the end", async () => {
    const people = await seen(countLines, ["Qa", "Qb"]);
    assert.deepEqual([people.text, people.stderr], ["Qa\nQb\n", "2 references\n"]);
    const piped = await seen(countLines, ["Qa", "Qb"], { isTTY: false });
    assert.deepEqual([piped.text, piped.stderr], ["Qa\nQb\n", ""]);
  });

  test("config show colours its names where colours are enabled, and stays JSON", async () => {
    const lines = ["{", '  "A\\"B": "C: \\"d\\": e",', '  "F": []', "}"];
    const painted = await seen(colouredJson, lines, { env: { TERM: "xterm" } });
    assert.ok(painted.text.includes('\u001b[36m"A\\"B"\u001b[0m: "C: \\"d\\": e"'), painted.text);
    assert.equal(stripVTControlCharacters(painted.text), `${lines.join("\n")}\n`);
    assert.equal((await seen(colouredJson, lines)).text, `${lines.join("\n")}\n`);
  });
});

test("an upload shows how much is sent, but not with --quiet or in a pipe", async (t) => {
  const folder = await folderOf(t, { file: "x".repeat(2_000_000) });
  const server = createServer((request, response) => request.resume().on("end", () => response.end("done")));
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => server.close());
  const origin = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const progressOf = async (isTTY: boolean, ...options: string[]) => {
    const stderr = Object.assign(new PassThrough(), { isTTY });
    const context = { cwd: folder, stderr, stdin: Readable.from([]) } as unknown as CommandContext;
    const session = new Session({ origin, source: "the test" } as Server, context);
    const command = { path: "block/put", file: { name: "data", required: true }, arguments: [] };
    const given = new Map(options.map((name) => [name, ["true"]]));
    const call = { command, arguments: [], files: ["file"], options: given } as unknown as Call;
    assert.equal(await text((await session.send(call)).body), "done");
    return written(stderr);
  };
  const people = await progressOf(true);
  assert.match(stripVTControlCharacters(people), /^\r \d.* \/ 2\.0 MB \[/);
  assert.ok(people.endsWith("\r\u001b[K"), "the line is taken away");
  assert.deepEqual([await progressOf(true, "quiet"), await progressOf(false)], ["", ""]);
});
