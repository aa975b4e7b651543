import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import { makePrivateFolder, reasonOf, writeFileAtomic } from "modhost";

/** Numbers of visits by app, kept in a file. */
export class Counts {
  /** Why the file cannot be written; undefined while it can. @type {string | undefined} */
  problem;
  #file;
  /** @type {Map<string, number>} */
  #apps;
  #isSaved = true;

  /**
   * @param {string} file
   * @throws {Error} for a file with other contents
   */
  constructor(file) {
    this.#file = file;
    this.#apps = readCounts(file);
  }

  get total() {
    return this.list().reduce((sum, { visits }) => sum + visits, 0);
  }

  /** @param {string} app */
  add(app) {
    this.#apps.set(app, (this.#apps.get(app) ?? 0) + 1);
    this.#isSaved = false;
  }

  /** @param {string} [app] all apps without one */
  reset(app) {
    if (app === undefined) this.#apps.clear();
    else this.#apps.delete(app);
    this.#isSaved = false;
  }

  list() {
    return [...this.#apps].map(([app, visits]) => ({ app, visits })).sort((a, b) => b.visits - a.visits);
  }

  /** @param {string} text of another instance */
  restore(text) {
    this.#apps = parseCounts(text);
    this.#isSaved = false;
  }

  text() {
    return `${JSON.stringify(Object.fromEntries(this.#apps))}\n`;
  }

  async save() {
    if (this.#isSaved) return;
    this.#isSaved = true;
    try {
      makePrivateFolder(dirname(this.#file));
      await writeFileAtomic(this.#file, this.text(), 0o600);
      this.problem = undefined;
    } catch (error) {
      this.#isSaved = false;
      this.problem = `The visits cannot be saved: ${reasonOf(error)}`;
    }
  }
}

/**
 * Reads a file of counts; a file that does not exist has none.
 * @param {string} file
 * @returns {Map<string, number>}
 * @throws {Error} for a file with other contents
 */
export function readCounts(file) {
  let text;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return new Map();
    throw error;
  }
  return parseCounts(text);
}

/** @param {string} text */
function parseCounts(text) {
  const counts = Object.entries(JSON.parse(text));
  if (!counts.every(([, visits]) => Number.isSafeInteger(visits))) throw new Error("These are no visits");
  return new Map(counts);
}
