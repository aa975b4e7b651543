/**
 * Replays recorded conversations about HTTP itself. Commands that need a node are replaced by
 * stand-ins with the same declarations, which respond as the recordings require. Steps that only a
 * store can serve are left to the tests of the whole.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { promisify } from "node:util";
import { commands as listed } from "#modules/mod_http_api/commands/commands.ts";
import { commands as version } from "#modules/mod_http_api/commands/version.ts";
import {
  type Argument,
  bytes,
  type Commands,
  defineGroup,
  nothing,
  raw,
  readCommand,
  stream,
  value,
} from "#modules/mod_http_api/rpc/command.ts";
import { fields } from "#modules/mod_http_api/rpc/shape.ts";
import { failure } from "#node/util/errors.ts";
import { startApi } from "./support.ts";

const replayer = new URL("../../../fixtures/transcripts/transcript.mjs", import.meta.url).pathname;

const directories = new Set<string>();
let wanted = 0;

const required = (name: string, more: Partial<Argument> = {}): Argument => ({
  name,
  required: true,
  help: name,
  ...more,
});
const path = required("ipfs-path", { variadic: true, stdin: "lines" });
const group = () => defineGroup({ help: "A group." });
const command = (args: readonly Argument[], run: () => unknown = () => undefined) =>
  readCommand({ help: "Stands in.", arguments: args, returns: value("any"), run });

const reasons: Readonly<Record<string, string>> = {
  "": "path does not begin with '/'",
  bad: "expected 1 as the cid version number, got: 0",
  nothing: "selected encoding not supported",
};
const refuse = (text: string) => {
  throw failure("INVALID_PATH", { path: `"${text}"`, reason: reasons[text] ?? "unknown" });
};

/** Ends without a value when the call is aborted. */
const silence = (signal: AbortSignal): AsyncIterable<never> => ({
  [Symbol.asyncIterator]: () => ({ next: () => once(signal, "abort").then(() => ({ done: true, value: undefined })) }),
});

const files = defineGroup({
  help: "Files.",
  options: { flush: { type: "bool", aliases: ["f"], default: true, help: "Flush." } },
});
const named = { name: "ipfs-path", required: true, variadic: true, stdin: "lines", help: "Paths." } as const;

const stand: Commands = {
  "version/deps": readCommand({
    help: "Dependencies.",
    returns: stream("any"),
    async *run() {
      yield { Path: "a", Version: "1", ReplacedBy: "", Sum: "x" };
    },
  }),
  files,
  "files/mkdir": readCommand({
    help: "Makes a directory.",
    group: files,
    arguments: [{ name: "path", required: true, help: "Path." }],
    returns: nothing,
    run({ arguments: args }) {
      if (directories.has(args.path)) throw failure("FILE_EXISTS");
      directories.add(args.path);
    },
  }),
  "files/cp": command([required("source"), required("dest")]),
  pin: group(),
  key: group(),
  "key/rename": command([required("name"), required("newName")]),
  dht: group(),
  "dht/findprovs": readCommand({
    help: "Finds providers.",
    arguments: [{ name: "key", required: true, variadic: true, help: "Key." }],
    options: { "num-providers": { type: "int", aliases: ["n"], default: 20, help: "How many." } },
    returns: nothing,
    run: () => undefined,
  }),
  repo: group(),
  "repo/version": readCommand({
    help: "Version of the repo.",
    options: { quiet: { type: "bool", aliases: ["q"], help: "Only the number." } },
    returns: value(fields("RepoVersion", { Version: "string" })),
    run: () => ({ Version: "11" }),
    text: ({ Version }, { options }) =>
      options.quiet === true ? `fs-repo@${Version}\n` : `ipfs repo version fs-repo@${Version}\n`,
  }),
  ls: readCommand({
    help: "Lists.",
    arguments: [named],
    returns: nothing,
    run: ({ arguments: args }) => refuse(args["ipfs-path"][0] ?? ""),
  }),
  refs: readCommand({
    help: "Links.",
    arguments: [named],
    options: { "max-depth": { type: "int", default: -1, help: "Depth." } },
    returns: stream("any"),
    run({ arguments: args }) {
      const [first = ""] = args["ipfs-path"];
      return first in reasons ? refuse(first) : (async function* () {})();
    },
  }),
  cat: readCommand({
    help: "Reads.",
    arguments: [path],
    options: { offset: { type: "int64", aliases: ["o"], help: "Offset." } },
    returns: raw,
    run: () => bytes((async function* () {})()),
  }),
  add: readCommand({
    help: "Adds.",
    file: { name: "path", required: true, many: true, help: "Files." },
    returns: stream("any"),
    async *run({ files: tree }) {
      for await (const entry of tree.entries()) yield { Name: entry.name };
    },
  }),
  block: group(),
  "block/get": readCommand({
    help: "Waits for a block.",
    arguments: [{ name: "key", required: true, stdin: "first", help: "Key." }],
    returns: raw,
    async run({ signal }) {
      wanted += 1;
      await once(signal, "abort").finally(() => (wanted -= 1));
      throw signal.reason;
    },
  }),
  bitswap: group(),
  "bitswap/wantlist": readCommand({
    help: "Wants.",
    returns: value("any"),
    run: () => ({ Keys: Array(wanted).fill({}) }),
  }),
  pubsub: group(),
  "pubsub/sub": readCommand({
    help: "Subscribes.",
    arguments: [{ name: "topic", required: true, help: "Topic." }],
    returns: stream("any"),
    eager: true,
    run: ({ signal }) => silence(signal),
  }),
  log: group(),
  "log/tail": readCommand({
    help: "Tails.",
    returns: raw,
    run: ({ signal }) => bytes(silence(signal)),
  }),
};

/** Steps that need a store or a configuration. */
const left = new Set([
  "paths 13: config/Discovery.MDNS.Interval",
  "paths 14: block/stat/QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn",
  "other bodies 3: add",
  "other bodies 4: add",
  "other bodies 7: add",
  "other bodies 9: add",
]);

interface Step {
  readonly scenario: string;
  readonly step: number;
  readonly call: string;
  readonly ok: boolean;
  readonly differences: unknown[];
}

describe("recorded conversations about HTTP itself", () => {
  let steps: Step[] = [];

  before(async () => {
    await using host = await startApi([listed, { version: version.version }, stand]);
    const report = join(host.folder, "report.json");
    const args = [replayer, "replay", "--api", `http://127.0.0.1:${host.http}`, "--only", "^wire/", "--json", report];
    // It exits with 1 if anything differs; the test decides which steps matter.
    await promisify(execFile)(process.execPath, args).catch(() => undefined);
    steps = JSON.parse(await readFile(report, "utf8")) as Step[];
    await rm(report);
  });

  test("every step that needs no store goes as recorded", () => {
    const title = ({ scenario, step, call }: Step) => `${scenario} ${step}: ${call}`;
    const compared = steps.filter((step) => !left.has(title(step)));
    const different = compared.filter(({ ok }) => !ok).map((step) => [title(step), step.differences]);
    assert.deepEqual(different, []);
    assert.equal(compared.length, steps.length - left.size);
    assert.ok(compared.length >= 85, `${compared.length} steps`);
  });
});
