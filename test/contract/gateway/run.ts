/**
 * `npm run gateway-transcripts -- [--only REGEX] [--verbose] [--url URL]`: sends the recorded
 * requests to this gateway. `--url` tests another server, which must have the fixtures;
 * explanations do not apply to it.
 */
import { parseArgs } from "node:util";
import { faultsOf, readExplanations } from "./explained.ts";
import { type Played, replay } from "./replay.ts";
import { startGateway } from "./server.ts";

const { values: given } = parseArgs({
  options: { only: { type: "string" }, verbose: { type: "boolean" }, url: { type: "string" } },
});
const { only = ".", verbose = false, url } = given;

const explained = url === undefined ? await readExplanations() : new Map<string, string>();
const played = url === undefined ? await replayOwn() : await replay(url, only);

async function replayOwn(): Promise<readonly Played[]> {
  await using server = await startGateway();
  return await replay(server.url, only);
}

const wanted = new Map([...explained].filter(([id]) => new RegExp(only).test(id)));
const faults = faultsOf(played, wanted);
for (const fault of faults) console.log(fault);
if (verbose) {
  for (const { id, differences } of played) {
    if (differences.length > 0) console.log([id, explained.get(id) ?? "", ...differences].join("\n    "));
  }
}
const fitting = played.filter(({ state }) => state === "ok").length;
const otherwise = played.filter(({ id, state }) => state !== "ok" && wanted.has(id)).length;
console.log(`${fitting} of ${played.length} as recorded, ${otherwise} different as explained, ${faults.length} wrong`);
process.exitCode = faults.length === 0 && played.length > 0 ? 0 : 1;
