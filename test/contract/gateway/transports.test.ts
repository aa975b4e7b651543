import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Client } from "#test/support/transports.ts";
import { filled, fixturesFolder } from "./replay.ts";
import { startGateway } from "./server.ts";

interface Recorded {
  readonly id: string;
  readonly get: string;
  readonly method?: string;
  readonly host?: string;
  readonly via?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Recorded requests to whatever host is asked. */
const requests = ["path", "names", "ranges", "formats", "car", "cache", "routing"].flatMap((topic) => {
  const text = readFileSync(join(fixturesFolder, "scenarios", `${topic}.json`), "utf8");
  const { requests: all } = JSON.parse(filled(text)) as { requests: readonly Recorded[] };
  return all.filter(({ host, via }) => host === undefined && via === undefined).map((each) => ({ ...each, topic }));
});

/** Of one connection, or of the time of the answer. */
const passing = new Set(["date", "connection", "keep-alive", "transfer-encoding", "last-modified", "alt-svc"]);

async function answered(client: Client, { get: path, method = "GET", headers = {} }: Recorded) {
  try {
    const { status, lines, bytes } = await client.request({ path, method, headers });
    const kept = lines
      // Seconds that are left of a record are fewer each time.
      .map(([name, value]) => [name.toLowerCase(), value.replace(/(stale-[a-z-]+)=\d+/g, "$1")] as const)
      .filter(([name]) => !passing.has(name));
    const described = { status, headers: Object.fromEntries(kept) };
    // Entries of a tar without a time of their own have that of the answer.
    return {
      ...described,
      body: described.headers["content-type"] === "application/x-tar" ? bytes.length : bytes.toString("latin1"),
    };
  } catch {
    return "it breaks off";
  }
}

test("a request is answered the same over HTTP/1.1, HTTPS and HTTP/2", async () => {
  await using server = await startGateway({ https_ports: [0], gateway_routing: true });
  const plain = server.client("HTTP/1.1");
  assert.ok(requests.length > 150, `${requests.length}`);
  for (const request of requests) {
    const wanted = await answered(plain, request);
    for (const name of ["HTTPS/1.1", "HTTP/2"] as const) {
      const got = await answered(server.client(name), request);
      // Parts of a body of several ranges are told apart by a text of their own each time.
      if (/multipart/.test(JSON.stringify(wanted))) assert.equal(typeof got, "object");
      else assert.deepEqual(got, wanted, `${request.topic}/${request.id} over ${name}`);
    }
  }
});
