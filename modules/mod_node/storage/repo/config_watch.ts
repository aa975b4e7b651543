/** Watches the configuration file and applies changes that somebody makes by hand. */
import { watch } from "node:fs";
import { basename, dirname } from "node:path";
import type { ConfigFile } from "./config.ts";

/** Milliseconds from a change until the file is read. Editors write in several steps. */
const SETTLE_MS = 100;
/**
 * A file that cannot be read is tried again this many times, with this delay in milliseconds,
 * because it may be half written.
 */
const MAX_TRIES = 5;
const RETRY_MS = 200;

/**
 * Watches the file until the returned function is called. Does not keep the process alive.
 *
 * @param warn called when the file is not a configuration (the current values then stay), and when
 * it cannot be watched
 */
export function watchConfig(config: ConfigFile, warn: (sentence: string) => void): () => void {
  const { path } = config;
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  let lastError: string | undefined;
  const look = async (tries: number) => {
    try {
      await config.reread();
      lastError = undefined;
    } catch (error) {
      if (isOver) return;
      if (tries < MAX_TRIES) return plan(RETRY_MS, tries + 1);
      const { message } = error as Error;
      if (message === lastError) return;
      lastError = message;
      warn(`${path} was changed but cannot be applied; the previous values stay: ${message}`);
    }
  };
  const plan = (delay: number, tries: number) => {
    clearTimeout(timer);
    if (!isOver) timer = setTimeout(() => void look(tries), delay).unref();
  };
  const unwatchable = (error: Error) =>
    warn(`${path} cannot be watched (${error.message}): after a change by hand, use \`modhost reload\``);
  try {
    // Watches the folder, because an editor replaces the file with another one.
    const watcher = watch(dirname(path), { persistent: false }, (_, name) => {
      if (name === null || name === basename(path)) plan(SETTLE_MS, 1);
    });
    watcher.on("error", unwatchable);
    return () => {
      isOver = true;
      clearTimeout(timer);
      watcher.close();
    };
  } catch (error) {
    unwatchable(error as Error);
    return () => undefined;
  }
}
