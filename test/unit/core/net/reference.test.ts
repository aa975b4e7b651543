import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import * as surface from "#core/net/http.ts";
import { httpPeer, type Peer } from "./peers.ts";

const pages = ["net-http", "net-http-connections", "net-http-helpers"];
const page = pages
  .map((name) => readFileSync(new URL(`../../../../docs/reference/${name}.md`, import.meta.url), "utf8"))
  .join("\n");
const examples = [...page.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = ""]) => code);
const run = promisify(execFile);

describe("the reference of net/http", () => {
  let peer: Peer;
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "modhost-reference-"));
    peer = await httpPeer((request, response) => {
      const route = `${request.method} ${request.url}`;
      response.setHeader("content-type", "text/plain");
      if (route === "GET /hello") response.end("Hello");
      else if (request.url === "/old") response.writeHead(302, { location: "/hello" }).end();
      else if (route === "POST /echo") request.pipe(response);
      else response.writeHead(404).end();
    });
  });
  after(async () => {
    await peer[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });

  test("has examples that are correct:", () => assert.ok(examples.length > 10));

  for (const [number, example] of examples.entries()) {
    const name = /^(?:const|await using|request|console).*$/m.exec(example)?.[0] ?? "the import";
    test(`example ${number + 1} prints what its comments say: ${name}`, async () => {
      const file = join(folder, `example${number}.mts`);
      const library = fileURLToPath(new URL("../../../../core/net/http.ts", import.meta.url));
      const code = example.replace("modhost/net/http", library).replaceAll("http://localhost:8080", peer.url);
      await writeFile(file, code);
      const { stdout } = await run(process.execPath, ["--conditions=source", file]);
      const said = [...code.matchAll(/console\.log\(.*; \/\/ (.*)$/gm)].map(([, text]) => text);
      assert.equal(said.length, code.split("console.log").length - 1, "each console.log says what it prints");
      assert.deepEqual(stdout.split("\n").slice(0, -1).toSorted(), said.toSorted());
    });
  }

  test("lists the failures with their messages, and no others", () => {
    const listed = [...page.matchAll(/^\| `([a-z-]+)` \| (.*\{url\}.*) \|$/gm)].map(([, code, message]) => [
      code,
      message,
    ]);
    assert.deepEqual(
      listed,
      Object.entries(surface.requestFailures).map(([code, { message }]) => [code, message]),
    );
  });

  test("documents every exported function and value", () => {
    const missing = Object.keys(surface).filter((name) => !page.includes(`\`${name}`));
    assert.deepEqual(missing, []);
  });
});
