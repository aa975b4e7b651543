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

/** Recorded requests that do not depend on the requested host. */
const requests = ["path", "names", "ranges", "formats", "car", "cache", "routing"].flatMap((topic) => {
  const text = readFileSync(join(fixturesFolder, "scenarios", `${topic}.json`), "utf8");
  const { requests: all } = JSON.parse(filled(text)) as { requests: readonly Recorded[] };
  return all.filter(({ host, via }) => host === undefined && via === undefined).map((each) => ({ ...each, topic }));
});

/** Headers of a single connection, or of the time of the response. */
const passing = new Set(["date", "connection", "keep-alive", "transfer-encoding", "last-modified", "alt-svc"]);

async function responseTo(client: Client, { get: path, method = "GET", headers = {} }: Recorded) {
  try {
    const { status, lines, bytes } = await client.request({ path, method, headers });
    const remaining = lines
      // The remaining seconds of a record decrease with each request.
      .map(([name, value]) => [name.toLowerCase(), value.replace(/(stale-[a-z-]+)=\d+/g, "$1")] as const)
      .filter(([name]) => !passing.has(name));
    const described = { status, headers: Object.fromEntries(remaining) };
    // Entries of a tar without a time of their own get the time of the response.
    return {
      ...described,
      body: described.headers["content-type"] === "application/x-tar" ? bytes.length : bytes.toString("latin1"),
    };
  } catch {
    return "it breaks off";
  }
}

test("a request gets the same response over HTTP/1.1, HTTPS and HTTP/2", async () => {
  await using server = await startGateway({ https_ports: [0], gateway_routing: true });
  const plain = server.client("HTTP/1.1");
  assert.ok(requests.length > 150, `${requests.length}`);
  for (const request of requests) {
    const wanted = await responseTo(plain, request);
    for (const name of ["HTTPS/1.1", "HTTP/2"] as const) {
      const got = await responseTo(server.client(name), request);
      // Each response with several ranges separates its parts with a different text.
      if (/multipart/.test(JSON.stringify(wanted))) assert.equal(typeof got, "object");
      else assert.deepEqual(got, wanted, `${request.topic}/${request.id} over ${name}`);
    }
  }
});
