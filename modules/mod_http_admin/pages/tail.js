/**
 * The latest items of a growing list: earlier items first, then new ones as they arrive. The list
 * is bounded, and pauses while somebody reads.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { useApi } from "./data.js";
import { useConnection, useTopic, whenOpened } from "./live.js";

/**
 * Minimum time in milliseconds between two redraws. Items that arrive in between are drawn
 * together.
 */
const DRAW = 200;

/**
 * @param {{ path: string, query?: Record<string, unknown>, topic: string, keyOf: (value: any) =>
 *   string | number, matches: (value: any) => boolean, max?: number }} source `path` returns the
 *   earlier items, the oldest first; `matches` filters new items as `query` filters earlier ones
 */
export function useTail({ path, query = {}, topic, keyOf, matches, max = 500 }) {
  const past = useApi(path, { query: { ...query, limit: max }, topic: "" });
  const [come, setCome] = useState(/** @type {any[]} */ ([]));
  const [isPaused, setPaused] = useState(false);
  const waiting = useRef(/** @type {any[]} */ ([]));
  useTopic(topic, (value) => {
    waiting.current.push(value);
    if (waiting.current.length > max) waiting.current.shift();
  });
  useEffect(() => whenOpened(() => void past.reload()), [past.reload]);
  const connection = useConnection();
  const wasLost = useRef(false);
  useEffect(() => {
    if (connection === "lost") wasLost.current = true;
    if (connection !== "connected" || !wasLost.current) return;
    wasLost.current = false;
    // Another process may start its numbering again.
    setCome([]);
  }, [connection]);
  useEffect(() => {
    if (isPaused) return undefined;
    const timer = setInterval(() => {
      if (waiting.current.length === 0) return;
      const fresh = waiting.current;
      waiting.current = [];
      setCome((previous) => [...previous, ...fresh].slice(-max));
    }, DRAW);
    return () => clearInterval(timer);
  }, [isPaused, max]);
  const all = new Map([...(past.data ?? []), ...come.filter(matches)].map((value) => [keyOf(value), value]));
  const values = [...all.values()].slice(-max);
  return { past, values, isPaused, setPaused, count: waiting.current.length };
}
