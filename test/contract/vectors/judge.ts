/** Compares a response with the expected one. */
import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { CommandReply } from "./call.ts";
import type { Expected } from "./plan.ts";

type Json = unknown;
type Lines = readonly Record<string, Json>[];

/** Returns a sentence for each difference. */
export function judge(reply: CommandReply, expected: Expected): string[] {
  const differences: string[] = [];
  const status = expected.status ?? (expected.pathValid === undefined ? 200 : undefined);
  if (status !== undefined && reply.status !== status) differences.push(`status ${reply.status}, not ${status}`);
  for (const [kind, wanted] of Object.entries(expected)) {
    if (kind === "status" || kind === "says") continue;
    const check = checks[kind];
    const difference = check === undefined ? `the check "${kind}" does not exist` : check(reply, wanted as never);
    if (difference !== undefined) differences.push(difference);
  }
  if (differences.length > 0) differences.push(`response: ${shortly(reply.body.toString())}${trailerOf(reply)}`);
  return differences;
}

type Check = (reply: CommandReply, wanted: never) => string | undefined;

const checks: Readonly<Record<string, Check>> = {
  error: fits((reply) => first(reply), "error"),
  json: fits((reply) => first(reply), "first value"),
  lastStepJson: fits((reply) => first(reply), "first value"),
  jsonContains: somewhere,
  lastStepJsonContains: somewhere,
  jsonLines: fits(lines, "lines"),
  jsonLinesAnyOrder: inAnyOrder(lines),
  jsonLinesInclude: (reply, wanted: Lines) => {
    const got = lines(reply);
    const missing = wanted.filter((line) => !got.some((other) => matches(other, line)));
    return missing.length === 0 ? undefined : `missing lines ${shortly(JSON.stringify(missing))}`;
  },
  jsonAnyOrder: inAnyOrder((reply) => first(reply) as unknown as Lines),
  lastJsonLine: fits((reply) => lines(reply).at(-1), "last line"),
  events: fits(hashed, "events"),
  eventsAnyOrder: inAnyOrder(hashed),
  events0: fits((reply) => hashed(reply)[0], "first event"),
  cid: fits((reply) => hashed(reply).at(-1)?.Hash ?? cidOf(first(reply)), "last hash"),
  allHashes: (reply, wanted: Readonly<Record<string, string>>) => {
    const got = new Set(hashed(reply).map(({ Hash }) => Hash));
    const missing = Object.entries(wanted).filter(([, hash]) => !got.has(hash));
    return missing.length === 0 ? undefined : `missing hashes ${JSON.stringify(Object.fromEntries(missing))}`;
  },
  messageContains: contains((reply) => String(first(reply)?.Message)),
  bodyText: same((reply) => reply.body.toString()),
  bodyHex: same((reply) => reply.body.toString("hex")),
  bodyTextContains: contains((reply) => reply.body.toString()),
  bodyTextStartsWith: (reply, wanted: string) =>
    reply.body.toString().startsWith(wanted) ? undefined : `the body does not begin with ${shortly(wanted)}`,
  bodySha256: (reply, { length, hash }: { length: number; hash: string }) => {
    const got = createHash("sha256").update(reply.body).digest("hex");
    return reply.body.length === length && got === hash ? undefined : `${reply.body.length} bytes with SHA-256 ${got}`;
  },
  trailer: (reply, wanted: string | Readonly<Record<string, string>>) => {
    const text = typeof wanted === "string" ? wanted : wanted["X-Stream-Error"];
    return reply.trailer === text ? undefined : `the trailer is not ${shortly(String(text))}`;
  },
  header: (reply, wanted: Readonly<Record<string, string>>) => headers(reply, wanted, (got, value) => got === value),
  headersExactlyExceptDate: (reply, wanted: Readonly<Record<string, string>>) =>
    headers(reply, wanted, (got, value) => got === value),
  headerStartsWith: (reply, wanted: Readonly<Record<string, string>>) =>
    headers(reply, wanted, (got, value) => got.startsWith(value)),
  pathValid: (reply, wanted: boolean) => {
    const refused = /^(invalid path|unsupported path)/.test(String(first(reply)?.Message));
    return refused === !wanted ? undefined : `the path ${refused ? "is refused" : "is taken"}`;
  },
};

function lines(reply: CommandReply): Lines {
  const texts = reply.body.toString().split("\n");
  try {
    return texts.filter((text) => text !== "").map((text) => JSON.parse(text));
  } catch {
    return [];
  }
}

function first(reply: CommandReply): Record<string, Json> | undefined {
  return lines(reply)[0];
}

/** Returns the CID that the first value names, for calls that add nothing. */
function cidOf({ Key, Cid }: Record<string, Json> = {}): Json {
  return Key ?? (Cid as Record<string, Json> | undefined)?.["/"];
}

/** Returns lines of added entries. Lines of progress have no hash. */
function hashed(reply: CommandReply): Lines {
  return lines(reply).filter(({ Hash }) => Hash !== undefined);
}

/** Objects may have further fields. Lists have to have the same length and order. */
export function matches(got: Json, wanted: Json): boolean {
  if (Array.isArray(wanted)) {
    return Array.isArray(got) && got.length === wanted.length && wanted.every((each, at) => matches(got[at], each));
  }
  if (typeof wanted !== "object" || wanted === null) return isDeepStrictEqual(got, wanted);
  if (typeof got !== "object" || got === null) return false;
  return Object.entries(wanted).every(([key, each]) => matches((got as Record<string, Json>)[key], each));
}

function fits(of: (reply: CommandReply) => Json, what: string): Check {
  return (reply, wanted: Json) =>
    matches(of(reply), wanted) ? undefined : `${what}: not ${shortly(JSON.stringify(wanted))}`;
}

function same(of: (reply: CommandReply) => Json): Check {
  return (reply, wanted: Json) => (of(reply) === wanted ? undefined : `not ${shortly(JSON.stringify(wanted))}`);
}

function contains(of: (reply: CommandReply) => string): Check {
  return (reply, wanted: string) => (of(reply).includes(wanted) ? undefined : `does not contain ${shortly(wanted)}`);
}

function inAnyOrder(of: (reply: CommandReply) => Lines): Check {
  return (reply, wanted: Lines) => {
    const left = [...(of(reply) ?? [])];
    const missing = wanted.filter((line) => {
      const at = left.findIndex((other) => matches(other, line));
      if (at >= 0) left.splice(at, 1);
      return at < 0;
    });
    if (missing.length === 0 && left.length === 0) return undefined;
    return `missing ${shortly(JSON.stringify(missing))}, left over ${shortly(JSON.stringify(left))}`;
  };
}

/**
 * Checks that an object anywhere in the first value has these fields. `linkHash` and `linkSize` are
 * those of a link.
 */
function somewhere(reply: CommandReply, wanted: Readonly<Record<string, Json>>): string | undefined {
  const names: Readonly<Record<string, string>> = { linkHash: "Hash", linkSize: "Size" };
  const renamed = Object.fromEntries(Object.entries(wanted).map(([key, value]) => [names[key] ?? key, value]));
  const found = (value: Json): boolean =>
    typeof value === "object" && value !== null && (matches(value, renamed) || Object.values(value).some(found));
  return found(first(reply)) ? undefined : `nowhere ${shortly(JSON.stringify(renamed))}`;
}

function headers(
  { headers: got }: CommandReply,
  wanted: Readonly<Record<string, string>>,
  fit: (got: string, wanted: string) => boolean,
): string | undefined {
  const wrong = Object.entries(wanted).filter(([name, value]) => !fit(String(got[name.toLowerCase()]), value));
  return wrong.length === 0 ? undefined : `headers ${wrong.map(([name]) => `${name}: ${got[name.toLowerCase()]}`)}`;
}

const shortly = (text: string | undefined): string =>
  text === undefined || text.length < 400 ? String(text) : `${text.slice(0, 400)}…`;

const trailerOf = ({ trailer }: CommandReply): string => (trailer === undefined ? "" : ` (trailer: ${trailer})`);
