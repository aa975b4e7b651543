/**
 * Plays the cases of a family against this node, and against the reference or a recording of it.
 */
import {
  type CallResponse,
  type Case,
  type CaseCall,
  type CaseDifference,
  type CaseStep,
  type Compared,
  comparedByDefault,
  type Family,
  type Level,
} from "./family.ts";
import { CaseRandom } from "./random.ts";

export interface NamedCase {
  readonly name: string;
  readonly calls: Case;
}

export interface Selection {
  readonly seed: number;
  /** Number of random cases. */
  readonly count: number;
}

/** Yields the fixed cases of a family, and as many random ones as selected. */
export function* casesOf({ fixed, random }: Family, level: Level, { seed, count }: Selection): Generator<NamedCase> {
  for (const [name, calls] of fixed?.(level) ?? []) yield { name, calls };
  for (let at = 0; at < count; at += 1) {
    yield { name: `random ${at}`, calls: random(new CaseRandom(seed * 1_000_003 + at), level, at) };
  }
}

/** Sends a call and returns the comparable part of the response. */
export type Responder = (call: CaseCall) => Promise<Compared>;

export const responder =
  ({ compare = comparedByDefault }: Family, ask: (call: CaseCall) => Promise<CallResponse>): Responder =>
  async (call) =>
    compare(await ask(call));

export interface CaseOutcome {
  readonly name: string;
  /** Number of calls that were sent. */
  readonly calls: number;
  /** Errors with different texts, which do not end the case. */
  readonly otherWords: readonly CaseDifference[];
  readonly difference: CaseDifference | undefined;
  /** The reason why the difference is intended. */
  readonly reason: string | undefined;
}

/** Sends the calls of a case to both servers, up to the first difference. */
export async function play(
  { explained }: Family,
  level: Level,
  { name, calls: sequence }: NamedCase,
  reference: Responder,
  ours: Responder,
): Promise<CaseOutcome> {
  const steps: CaseStep[] = [];
  const otherWords: CaseDifference[] = [];
  for (let next = sequence.next(); !next.done; ) {
    const call = next.value;
    const [theirs, own] = await Promise.all([reference(call), ours(call)]);
    const step = { call, reference: theirs, ours: own };
    steps.push(step);
    if (textOf(theirs) !== textOf(own)) {
      const difference = { ...step, level, steps: [...steps] };
      const isRefusedByBoth = theirs.refusal !== undefined && own.refusal !== undefined;
      if (theirs.response !== own.response || !isRefusedByBoth) {
        const reason = explained.find(({ applies }) => applies(difference))?.reason;
        return { name, calls: steps.length, otherWords, difference, reason };
      }
      otherWords.push(difference);
    }
    next = sequence.next(theirs);
  }
  return { name, calls: steps.length, otherWords, difference: undefined, reason: undefined };
}

/** The error text is on a line of its own. */
export const textOf = ({ response: text, refusal }: Compared): string =>
  refusal === undefined ? text : `${text}${REFUSAL}${refusal}`;

const REFUSAL = "\n! ";

export function comparedIn(text: string): Compared {
  const at = text.indexOf(REFUSAL);
  return at < 0 ? { response: text } : { response: text.slice(0, at), refusal: text.slice(at + REFUSAL.length) };
}
