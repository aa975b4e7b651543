/** Loads the content of a path: a file, or a folder whose entries load and show page by page. */
import { get, useConnection } from "modhost/admin";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

const PAGE = 1000;

/** @param {string} path */
export function useEntries(path) {
  const [loaded, set] = useState(/** @type {{ path: string, data?: any, error?: Error }} */ ({ path }));
  const pending = useRef(/** @type {AbortController | undefined} */ (undefined));
  const connection = useConnection();
  const reload = useCallback(async () => {
    pending.current?.abort();
    const own = (pending.current = new AbortController());
    try {
      const stat = await get("/node/files/stat", { path }, own.signal);
      if (stat.type === "file") {
        set({ path, data: stat });
        return;
      }
      const entries = [];
      for (let total = 1; entries.length < total; ) {
        const page = await get("/node/files", { path, offset: entries.length, limit: PAGE }, own.signal);
        entries.push(...page.entries);
        total = page.entries.length === 0 ? 0 : page.total;
        if (own.signal.aborted) return;
        set({ path, data: { ...page, type: "directory", entries: [...entries] } });
      }
    } catch (error) {
      if (!own.signal.aborted)
        set((previous) => ({ ...(previous.path === path ? previous : { path }), error: /** @type {Error} */ (error) }));
    }
  }, [path]);
  useEffect(() => {
    if (connection !== "lost") void reload();
    return () => pending.current?.abort();
  }, [reload, connection === "lost"]);
  const isCurrent = loaded.path === path;
  const { data, error } = isCurrent ? loaded : { data: undefined, error: undefined };
  return { data, error, isLoading: data === undefined && error === undefined, reload };
}
