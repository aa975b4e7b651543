/** Watches the config file: what somebody writes into it by hand is put in force like any other change. */
import { watch } from "node:fs";
import { basename, dirname } from "node:path";
import type { ConfigFile } from "./config.ts";

/** Milliseconds from a change of the file until it is read: editors write in several steps. */
const SETTLE_MS = 100;
/** A file that cannot be read is tried again so often, after so many milliseconds: it may be half written. */
const MAX_TRIES = 5;
const RETRY_MS = 200;

/**
 * Watches until the function that this gives is called; keeps no process alive.
 *
 * @param warn told when the file is no configuration (the values before it stay in force), and when it cannot be watched
 */
export function watchConfig(config: ConfigFile, warn: (sentence: string) => void): () => void {
  const { path } = config;
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  let told: string | undefined;
  const look = async (tries: number) => {
    try {
      await config.reread();
      told = undefined;
    } catch (error) {
      if (isOver) return;
      if (tries < MAX_TRIES) return plan(RETRY_MS, tries + 1);
      const { message } = error as Error;
      if (message === told) return;
      told = message;
      warn(`${path} was changed and is not taken, what was in force stays so: ${message}`);
    }
  };
  const plan = (delay: number, tries: number) => {
    clearTimeout(timer);
    if (!isOver) timer = setTimeout(() => void look(tries), delay).unref();
  };
  const unwatchable = (error: Error) =>
    warn(`${path} cannot be watched (${error.message}): after a change by hand, use \`modhost reload\``);
  try {
    // The folder: an editor puts another file in the place of the old one.
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
