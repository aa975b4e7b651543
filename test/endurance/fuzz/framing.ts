/**
 * Compares the contents of a chunked body as the host reads them with those of Node's parser: the
 * two must never disagree.
 */
import { createRequire } from "node:module";
import { ChunkedFraming } from "#core/http/patches/node/framing.ts";
import type { FuzzOptions } from "./fuzz.ts";
import { Random } from "./random.ts";

export interface FramingSummary {
  readonly inputs: number;
  /** Number of reads in which the host joined chunks of a body. */
  readonly joined: number;
  readonly failures: readonly string[];
}

interface NodeParser {
  initialize(type: number, resource: object): void;
  execute(bytes: Buffer): number | Error;
  close(): void;
  [index: number]: unknown;
}

// Node does not export its parser. This module is one that it retains for old programs.
const { HTTPParser } = createRequire(import.meta.url)("_http_common") as {
  HTTPParser: { new (): NodeParser; readonly REQUEST: number };
};
const ON_HEAD = 2;
const ON_BODY = 3;
const ON_COMPLETE = 4;
const HEAD = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
const MAX_FAILURES = 20;

/**
 * A request in Node's parser. Node frees a parser only when it is closed: otherwise 400,000 of them
 * fill the heap.
 */
class Parsed implements Disposable {
  readonly #parser = new HTTPParser();
  found: Buffer[] = [];
  isComplete = false;
  #error: Error | undefined;

  constructor() {
    this.#parser.initialize(HTTPParser.REQUEST, {});
    Object.assign(this.#parser, {
      [ON_HEAD]: () => 0,
      [ON_BODY]: (bytes: Buffer) => this.found.push(Buffer.from(bytes)),
      [ON_COMPLETE]: () => {
        this.isComplete = true;
      },
    });
    this.parse(Buffer.from(HEAD));
  }

  [Symbol.dispose](): void {
    this.#parser.close();
  }

  parse(bytes: Buffer): void {
    if (this.#error !== undefined || bytes.length === 0) return;
    const parsed = this.#parser.execute(bytes);
    if (typeof parsed !== "number") this.#error = parsed;
  }

  /** Returns why the parser rejects the input. */
  refusal(): string | undefined {
    return this.#error?.message;
  }

  /** Returns the lengths of the contents in bytes. */
  lengthsIn(bytes: Buffer): number[] {
    const before = this.found.length;
    this.parse(bytes);
    return this.found.slice(before).map(({ length }) => length);
  }
}

const sizes = [0, 1, 2, 3, 10, 15, 16, 17, 31, 60, 200, 300];
const oddities = [
  "\r",
  "\n",
  "\r\n",
  "0",
  "1",
  "a",
  "F",
  "x",
  " ",
  ";",
  "-",
  "\0",
  "\u00ff",
  "0\r\n\r\n",
  "3\r\nabc\r\n",
];

/** Contents of chunks; some look like chunks. */
const fillings = ["c", "\r\n", "3\r\nabc\r\n", "0\r\n\r\n", "\r", "a\r\n1\r\n"];

/** Makes the bytes of a body, most of them correct. */
function bodyOf(random: Random): Buffer {
  const chunks = random.some(12, () => {
    const size = random.pick(sizes);
    const digits = size.toString(16).padStart(random.chance(0.1) ? 1 + random.below(20) : 1, "0");
    const line = random.chance(0.2) ? digits.toUpperCase() : digits;
    const extension = random.chance(0.1) ? random.pick([";a=b", " ", ";", "\t;x", ';q="\r\n"']) : "";
    const contents = random.pick(fillings).repeat(size).slice(0, size);
    return `${line}${extension}\r\n${contents}\r\n`;
  });
  let text = chunks.join("");
  if (random.chance(0.7))
    text += `0\r\n${random.chance(0.2) ? "X-Sum: 1\r\n" : ""}\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n`;
  for (const _ of random.some(2, () => 0)) {
    if (random.chance(0.5)) continue;
    const at = random.below(text.length + 1);
    text = text.slice(0, at) + random.pick(oddities) + text.slice(at + random.below(3));
  }
  return Buffer.from(text, "latin1");
}

/** Tests one input: a body in reads of random lengths. Undefined if both agree. */
function difference(random: Random, joined: () => void): string | undefined {
  const body = bodyOf(random);
  using parsed = new Parsed();
  let framing: ChunkedFraming | undefined;
  const longest = random.pick([2, 40, 400, 400, 1000]);
  for (let at = 0; at < body.length && parsed.refusal() === undefined && !parsed.isComplete; ) {
    const read = Buffer.from(body.subarray(at, at + 1 + random.below(longest)));
    at += read.length;
    if (framing === undefined) {
      const first = parsed.lengthsIn(read.subarray(0, 1));
      framing = ChunkedFraming.behind(read, first, parsed.lengthsIn(read.subarray(1)));
      if (framing !== undefined) joined();
      if (framing !== undefined && (parsed.refusal() !== undefined || parsed.isComplete)) return "joined after the end";
      continue;
    }
    const used = framing.scan(read);
    const before = parsed.found.length;
    parsed.parse(read.subarray(0, used));
    const theirs = Buffer.concat(parsed.found.slice(before));
    const ours = Buffer.from(framing.contents(read));
    if (parsed.refusal() !== undefined) return `the parser rejects what the host accepts: ${parsed.refusal()}`;
    if (!theirs.equals(ours))
      return `the parser finds ${JSON.stringify(theirs.toString("latin1"))}, not ${JSON.stringify(ours.toString("latin1"))}`;
    if (parsed.isComplete) return "the body ended before the end of its framing";
    if (framing.isOver) return undefined;
  }
  return undefined;
}

export function fuzzFraming({
  seed,
  from = 0,
  count = Number.POSITIVE_INFINITY,
  seconds,
}: FuzzOptions): FramingSummary {
  const failures: string[] = [];
  const until = performance.now() + seconds * 1000;
  let inputs = 0;
  let joined = 0;
  for (; inputs < count && performance.now() < until && failures.length < MAX_FAILURES; inputs += 1) {
    const number = from + inputs;
    const found = difference(new Random(seed + number), () => {
      joined += 1;
    });
    if (found !== undefined) failures.push(`input ${number}: ${found}`);
  }
  return { inputs, joined, failures };
}
