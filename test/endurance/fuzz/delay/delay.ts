/**
 * Measures how long hostile inputs hold the event loop in one piece, up to the largest input of
 * each reader.
 */
import { longestTurn, MAX_TURN_MS, slowdown } from "./meter.ts";
import type { Target } from "./target.ts";
import { messageTargets } from "./targets/messages.ts";
import { nodeTargets } from "./targets/nodes.ts";
import { requestTargets } from "./targets/requests.ts";
import { textTargets } from "./targets/texts.ts";

export const targets: readonly Target[] = [...textTargets, ...nodeTargets, ...messageTargets, ...requestTargets];

export interface Turn {
  readonly target: string;
  readonly shape: string;
  /** Bytes of the input. */
  readonly size: number;
  /** CPU time of the longest turn. */
  readonly ms: number;
  /** How busy the machine was meanwhile, see `slowdown`: a share of the time is its own. */
  readonly slowdown: number;
  /** Why it may take longer. */
  readonly atOnce: string | undefined;
}

const FIRST_SIZE = 10_000;
/** Sizes grow by this; an input that takes too long is not made larger. */
const GROWTH = 10;
/** The best of so many runs is what counts. */
const RUNS = 5;

/**
 * The worst input of a target: it grows from 10 KB to the bound of the interface, until it takes
 * more than `bound`.
 */
export async function worstOf(target: Target, bound = MAX_TURN_MS): Promise<Turn> {
  let worst: Turn = { target: target.name, shape: "", size: 0, ms: 0, slowdown: 1, atOnce: target.atOnce };
  for (const shape of target.shapes) {
    for (let size = Math.min(FIRST_SIZE, target.most); ; size = Math.min(size * GROWTH, target.most)) {
      const ms = await longestTurn(target.prepare(shape, size), RUNS, bound / 2);
      if (ms > worst.ms) worst = { ...worst, shape, size, ms, slowdown: ms > bound ? slowdown() : 1 };
      if (ms > bound || size >= target.most) break;
    }
  }
  return worst;
}

const SMALL = 20_000;
const LARGE = 8 * SMALL;
/** Below it, growth is not looked at. */
const MIN_TURN_MS = 100;
/** A square would be 64, and what is linear 8. */
const MAX_RATIO = 24;

/**
 * The inputs that take a time which grows faster than their size: so many times as long for an
 * input eight times as long. Margins are wide, since the machine may be busy with other things.
 */
export async function steepOf(target: Target): Promise<string[]> {
  const found: string[] = [];
  const large = Math.min(LARGE, target.most);
  for (const shape of target.shapes) {
    const once = await longestTurn(target.prepare(shape, large), 1);
    if (once <= MIN_TURN_MS) continue;
    const before = await longestTurn(target.prepare(shape, large / 8), RUNS);
    const most = Math.max(MIN_TURN_MS, before * MAX_RATIO);
    // A run that is short enough settles it.
    const ms = await longestTurn(target.prepare(shape, large), RUNS, most);
    if (ms > most) found.push(`${target.name}, ${shape}: ${large} bytes take ${ms} ms, an eighth ${before}`);
  }
  return found;
}
