/** Runs the code that the guide of the gateway shows to users of client libraries. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { provided, type RoutingPair } from "#test/unit/modules/mod_http_gateway/routing/pair.ts";
import { librariesFolder } from "./libraries.ts";

const page = new URL("../../../docs/guides/gateway/clients.md", import.meta.url);
const guard = new URL("guarded.ts", import.meta.url);

export async function* snippetsOfGuide({ gatewayHost, url }: RoutingPair): AsyncGenerator<string, void, undefined> {
  await provided(gatewayHost, "hello gateway\n");
  const snippets = [...(await readFile(page, "utf8")).matchAll(/^```js\n(.*?)^```$/gms)].map(([, text = ""]) => text);
  assert.equal(snippets.length, 3);
  for (const snippet of snippets) {
    const program = snippet.replace("http://127.0.0.1:5280", url);
    const args = ["--import", guard.href, "--input-type=module", "--eval", program];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: librariesFolder });
    const expected = [...snippet.matchAll(/console\.log\(.*\/\/ (.*)$/gm)].map(([, output = ""]) => output);
    const patterns = expected.map((output) => RegExp.escape(output).replaceAll("\\.\\.\\.", "\\w+"));
    assert.match(stdout, new RegExp(`^${patterns.join("\n")}\n$`));
    yield `a snippet prints ${stdout.trim()}`;
  }
}
