/**
 * Measures how long hostile inputs block the event loop at once, up to the largest input of each
 * reader.
 */
import { longestTurn, MAX_TURN_MS, slowdown } from "./meter.ts";
import type { InputTarget } from "./target.ts";
import { messageTargets } from "./targets/messages.ts";
import { nodeTargets } from "./targets/nodes.ts";
import { requestTargets } from "./targets/requests.ts";
import { textTargets } from "./targets/texts.ts";

export const targets: readonly InputTarget[] = [...textTargets, ...nodeTargets, ...messageTargets, ...requestTargets];

export interface Turn {
  readonly target: string;
  readonly shape: string;
  /** Bytes of the input. */
  readonly size: number;
  /** CPU time of the longest turn in milliseconds. */
  readonly ms: number;
  /** Load of the machine meanwhile, see `slowdown`: it explains a part of the time. */
  readonly slowdown: number;
  /** Reason why it may take longer. */
  readonly atOnce: string | undefined;
}

const FIRST_SIZE = 10_000;
/** Factor between two sizes. If an input takes too long, it is not enlarged. */
const GROWTH = 10;
/** Number of runs. The fastest one counts. */
const RUNS = 5;

/**
 * Returns the worst input of a target. Its size grows from 10 KB to the limit of the interface,
 * until it takes more than `bound`.
 */
export async function worstOf(target: InputTarget, bound = MAX_TURN_MS): Promise<Turn> {
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
/** Growth is not measured below this time. */
const MIN_TURN_MS = 100;
/** Maximum ratio: quadratic growth would give 64, linear growth 8. */
const MAX_RATIO = 24;

/**
 * Returns inputs whose time grows faster than their size: it compares an input with one of eight
 * times the size. The margins are wide, because the machine may be busy with other work.
 */
export async function steepOf(target: InputTarget): Promise<string[]> {
  const found: string[] = [];
  const large = Math.min(LARGE, target.most);
  for (const shape of target.shapes) {
    const once = await longestTurn(target.prepare(shape, large), 1);
    if (once <= MIN_TURN_MS) continue;
    const before = await longestTurn(target.prepare(shape, large / 8), RUNS);
    const most = Math.max(MIN_TURN_MS, before * MAX_RATIO);
    // One run that is short enough is sufficient.
    const ms = await longestTurn(target.prepare(shape, large), RUNS, most);
    if (ms > most) found.push(`${target.name}, ${shape}: ${large} bytes take ${ms} ms, an eighth of them ${before}`);
  }
  return found;
}
