/** The parts of a family of random calls. */
import type { SentPart } from "#test/unit/modules/mod_http_api/support.ts";
import type { CaseRandom } from "./random.ts";

export const levels = ["0.9", "0.43"] as const;
export type Level = (typeof levels)[number];

export interface CaseCall {
  /** Path after `/api/v0/` with its query; for a request to the gateway, the whole path. */
  readonly path: string;
  /** A request to the gateway. */
  readonly gateway?: { readonly method: string; readonly headers: Readonly<Record<string, string>> };
  /** Parts of a multipart body. */
  readonly parts?: readonly SentPart[];
}

export interface CallResponse {
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
 * Calls that are sent one after the other, as long as both servers respond in the same way. A yield
 * returns the response of the reference.
 */
export type Case = Generator<CaseCall, void, Compared>;

export interface CaseStep {
  readonly call: CaseCall;
  readonly reference: Compared;
  readonly ours: Compared;
}

/** A step whose responses differ. */
export interface CaseDifference extends CaseStep {
  readonly level: Level;
  /** The steps of the case up to and including this one. */
  readonly steps: readonly CaseStep[];
}

/** A reason for differences that are intended. */
export interface IntendedDifference {
  readonly reason: string;
  readonly applies: (difference: CaseDifference) => boolean;
}

export interface Family {
  readonly name: string;
  /** Default: all. */
  readonly levels?: readonly Level[];
  /** Calls that are sent once, before all cases. */
  readonly before?: readonly CaseCall[];
  /** Named cases that are played before the random ones. */
  readonly fixed?: (level: Level) => Iterable<readonly [name: string, calls: Case]>;
  /** Makes a random case. `at` is different for each case of a run. */
  readonly random: (random: CaseRandom, level: Level, at: number) => Case;
  /** Default: `comparedByDefault`. */
  readonly compare?: (response: CallResponse) => Compared;
  readonly explained: readonly IntendedDifference[];
  /** Number of random cases of each level that are recorded for `npm test`. */
  readonly recorded: number;
}

/** Compares statuses and bodies. The text of a failure becomes `refusal`. */
export function comparedByDefault({ status, body, late }: CallResponse): Compared {
  if (status >= 400) return { response: String(status), refusal: messageIn(body.toString()) };
  return { response: `${status} ${body.toString()}`, refusal: late };
}

/** Returns the message of a failure, or the whole text if there is none. */
export function messageIn(text: string): string {
  try {
    const { Message } = JSON.parse(text) as { Message?: unknown };
    return typeof Message === "string" ? Message : text;
  } catch {
    return text;
  }
}

/** A case of one call. */
export function* single(call: CaseCall): Case {
  yield call;
}
