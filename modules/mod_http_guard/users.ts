/** Users with passwords, from the options and their file, and the check of what a request presents. */
import { createHmac, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { ModhostError, reasonOf } from "../../core/index.ts";
import type { Module } from "../../core/types.ts";
import type { options } from "./options.ts";
import { isPassword, type KeptPassword, nobodysPassword, readKept } from "./passwords.ts";

/** How long a password that was right is remembered, as a keyed digest: checking it anew takes a tenth of a second. */
const REMEMBERED_SECONDS = 300;
const MAX_REMEMBERED = 1000;
/** Checks run one after the other, so that guesses leave processors to others; so many may wait. */
const MAX_WAITING = 32;

export type Verdict = "right" | "wrong" | "busy";

/** The users of one configuration. */
export class Users {
  readonly #kept: ReadonlyMap<string, KeptPassword>;
  readonly #nobody = nobodysPassword();
  readonly #key = randomBytes(32);
  readonly #now: () => number;
  /** When what was right is forgotten, by digest. */
  readonly #right = new Map<string, number>();
  readonly #running = new Map<string, Promise<Verdict>>();
  #last: Promise<unknown> = Promise.resolve();

  constructor(kept: ReadonlyMap<string, KeptPassword>, now: () => number) {
    this.#kept = kept;
    this.#now = now;
  }

  has(name: string): boolean {
    return this.#kept.has(name);
  }

  check(name: string, password: string): Verdict | Promise<Verdict> {
    const digest = createHmac("sha256", this.#key).update(`${name.length}:${name}${password}`).digest("base64");
    if ((this.#right.get(digest) ?? 0) > this.#now()) return "right";
    const running = this.#running.get(digest);
    if (running !== undefined) return running;
    if (this.#running.size >= MAX_WAITING) return "busy";
    const verdict = this.#last.then(async () => ((await this.#isRight(name, password)) ? "right" : "wrong"));
    this.#last = verdict.catch(() => undefined);
    const checked = verdict
      .then((found) => {
        if (found === "right") this.#remember(digest);
        return found;
      })
      .finally(() => this.#running.delete(digest));
    this.#running.set(digest, checked);
    return checked;
  }

  async #isRight(name: string, password: string): Promise<boolean> {
    const kept = this.#kept.get(name);
    const matches = await isPassword(kept ?? this.#nobody, password);
    return kept !== undefined && matches;
  }

  #remember(digest: string): void {
    if (this.#right.size >= MAX_REMEMBERED) this.#right.delete(this.#right.keys().next().value as string);
    this.#right.set(digest, this.#now() + REMEMBERED_SECONDS);
  }
}

/**
 * The users that the options of a host name.
 * @throws {ModhostError} OPTION_INVALID, which tells nothing of what was written for a password
 */
export function readUsers(module: Module<typeof options>): Map<string, KeptPassword> {
  const users = new Map<string, KeptPassword>();
  for (const [name, text] of Object.entries(module.get_option("http_guard_users"))) {
    users.set(name, keptOf(text, `http_guard_users.${name}`));
  }
  const path = module.get_option("http_guard_users_file");
  if (path === undefined) return users;
  const place = "http_guard_users_file";
  let lines: string[];
  try {
    lines = readFileSync(path, "utf8").split(/\r?\n/);
  } catch (error) {
    const value = JSON.stringify(path);
    const allowed = `that cannot be read: ${reasonOf(error)}`;
    throw new ModhostError("OPTION_INVALID", { name: place, value, allowed }, { cause: error });
  }
  for (const [at, line] of lines.entries()) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const colon = line.indexOf(":");
    users.set(line.slice(0, Math.max(colon, 0)), keptOf(line.slice(colon + 1).trim(), `${place}, line ${at + 1},`));
  }
  return users;
}

function keptOf(text: unknown, name: string): KeptPassword {
  const kept = typeof text === "string" ? readKept(text) : undefined;
  if (kept !== undefined) return kept;
  const allowed = "it must be what `modhost password` prints: $scrypt$ln=15,r=8,p=3$SALT$HASH";
  throw new ModhostError("OPTION_INVALID", { name, value: "***", allowed });
}
