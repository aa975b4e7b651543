/** Calls endpoints by plain HTTP, because client libraries call only some of them. */
import { parseServer } from "#modules/mod_http_api/cli/rpc/server.ts";
import { calls, type EarlierResults } from "#test/contract/surface/calls.ts";
import { callEndpoint } from "#test/contract/surface/live.ts";
import { storageCommands } from "#test/support/storage_commands.ts";

/**
 * Calls all endpoints on a new server, and stops it. Throws if an endpoint fails or has no call.
 * Yields their number.
 */
export async function* byPlainHttp(url: string): AsyncGenerator<string, void, undefined> {
  const server = parseServer(url, "the test");
  const results: Record<string, EarlierResults[string]> = {};
  const known = new Map(storageCommands);
  const failures = [...known.keys()].filter((path) => !(path in calls)).map((path) => `${path}: the table has no call`);
  for (const [path, call] of Object.entries(calls)) {
    const command = known.get(path);
    if (command === undefined) continue;
    const outcome = await callEndpoint(server, path, command, call, results);
    if (outcome.state !== "works") failures.push(`${path}: ${outcome.state === "fails" ? outcome.why : "501"}`);
  }
  if (failures.length > 0) throw new Error(failures.join("\n"));
  yield `${known.size} endpoints by plain HTTP`;
}
