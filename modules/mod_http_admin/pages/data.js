/**
 * Loads data of the server in components, reloads it when something has changed, and reports
 * errors.
 */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { get } from "./api.js";
import { follow, useConnection } from "./live.js";

/**
 * @template T
 * @typedef {{ data: T | undefined, error: Error | undefined, isLoading: boolean, reload: () =>
 * Promise<void> }} Loaded
 */

/**
 * Loads the result of an operation. Reloads when `path` or `query` differ, after every change of
 * the server, after a reconnection, and every `every` milliseconds while the page is visible. Shows
 * the previous result until then.
 * @template [T=any]
 * @param {string | undefined} path undefined sends no request
 * @param {{ query?: Record<string, unknown>, every?: number, topic?: string | undefined }}
 * [options] `topic`: the topic whose events cause a reload, "" for none; default `changes`
 * @returns {Loaded<T>}
 */
export function useApi(path, { query = {}, every, topic = "changes" } = {}) {
  const [loaded, set] = useState(/** @type {{ key: string, data?: T, error?: Error }} */ ({ key: "" }));
  const connection = useConnection();
  const key = `${path} ${JSON.stringify(query)}`;
  const pending = useRef(/** @type {AbortController | undefined} */ (undefined));
  const wanted = useRef({ path, query, key });
  wanted.current = { path, query, key };
  // A dialog that was opened before a change of `query` must reload what is shown now.
  const reload = useCallback(async () => {
    const { path, query, key } = wanted.current;
    if (path === undefined) return;
    pending.current?.abort();
    const own = (pending.current = new AbortController());
    try {
      const data = await get(path, query, own.signal);
      if (!own.signal.aborted) set({ key, data });
    } catch (error) {
      if (!own.signal.aborted)
        set((previous) => ({ ...(previous.key === key ? previous : { key }), error: /** @type {Error} */ (error) }));
    }
  }, []);
  useEffect(() => {
    if (connection !== "lost") void reload();
    return () => pending.current?.abort();
  }, [key, connection === "lost"]);
  useEffect(() => (topic === "" ? undefined : follow(topic, () => void reload())), [topic]);
  useEffect(() => {
    if (every === undefined) return undefined;
    const timer = setInterval(() => document.visibilityState === "visible" && void reload(), every);
    return () => clearInterval(timer);
  }, [every]);
  const isCurrent = loaded.key === key;
  return {
    data: isCurrent ? loaded.data : undefined,
    error: isCurrent ? loaded.error : undefined,
    isLoading: path !== undefined && (!isCurrent || (loaded.data === undefined && loaded.error === undefined)),
    reload,
  };
}

/**
 * Runs an action that a person started. Returns whether it is running, and its error.
 * @template {unknown[]} A
 * @param {(...args: A) => Promise<unknown>} run
 */
export function useAction(run) {
  const [state, set] = useState(/** @type {{ isBusy: boolean, error?: Error }} */ ({ isBusy: false }));
  const start = async (/** @type {A} */ ...args) => {
    set({ isBusy: true });
    try {
      await run(...args);
      set({ isBusy: false });
      return true;
    } catch (error) {
      set({ isBusy: false, error: /** @type {Error} */ (error) });
      return false;
    }
  };
  return { ...state, start, clear: () => set({ isBusy: false }) };
}
