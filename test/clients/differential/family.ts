/** What a family of random calls consists of. */
import type { SentPart } from "#test/unit/modules/mod_http_api/support.ts";
import type { Random } from "./random.ts";

export const levels = ["0.9", "0.43"] as const;
export type Level = (typeof levels)[number];

export interface Call {
  /** After `/api/v0/`, with its query; of a gateway's request all of its path. */
  readonly path: string;
  /** A request to the gateway. */
  readonly gateway?: { readonly method: string; readonly headers: Readonly<Record<string, string>> };
  /** Parts of a multipart body. */
  readonly parts?: readonly SentPart[];
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
  /** The failure that a trailer reports after the body has begun. */
  readonly late: string | undefined;
}

/** The parts of a response that are compared. */
export interface Compared {
  /** Must be the same. */
  readonly response: string;
  /** The text of an error, which may have other words. */
  readonly refusal?: string | undefined;
}

/**
 * Calls that are sent one after the other, as long as both answer the same. A yield returns what
 * the reference answered.
 */
export type Case = Generator<Call, void, Compared>;

export interface Step {
  readonly call: Call;
  readonly reference: Compared;
  readonly ours: Compared;
}

/** A step of which the answers differ. */
export interface Difference extends Step {
  readonly level: Level;
  /** The steps of the case up to this one. */
  readonly steps: readonly Step[];
}

/** A difference that is meant. */
export interface Explanation {
  readonly reason: string;
  readonly applies: (difference: Difference) => boolean;
}

export interface Family {
  readonly name: string;
  /** Default: all. */
  readonly levels?: readonly Level[];
  /** Calls that are sent once, before all cases. */
  readonly before?: readonly Call[];
  /** Cases by name that are played before the random ones. */
  readonly fixed?: (level: Level) => Iterable<readonly [name: string, calls: Case]>;
  /** A random case. `at` is different for each case of a run. */
  readonly random: (random: Random, level: Level, at: number) => Case;
  /** Default: `comparedByDefault`. */
  readonly compare?: (answer: Answer) => Compared;
  readonly explained: readonly Explanation[];
  /** How many random cases of each level are recorded for `npm test`. */
  readonly recorded: number;
}

/** Compares statuses and bodies, and takes the text of a failure for the refusal. */
export function comparedByDefault({ status, body, late }: Answer): Compared {
  if (status >= 400) return { response: String(status), refusal: messageIn(body.toString()) };
  return { response: `${status} ${body.toString()}`, refusal: late };
}

/** The message of a failure; the whole text where it is none. */
export function messageIn(text: string): string {
  try {
    const { Message } = JSON.parse(text) as { Message?: unknown };
    return typeof Message === "string" ? Message : text;
  } catch {
    return text;
  }
}

/** A case of one call. */
export function* single(call: Call): Case {
  yield call;
}
