/**
 * Users with passwords, from the options and their file, and the check of a request's credentials.
 */
import { createHmac, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { ModhostError, reasonOf } from "../../core/index.ts";
import type { Module } from "../../core/types.ts";
import type { options } from "./options.ts";
import { isPassword, nobodysPassword, readStored, type StoredPassword } from "./passwords.ts";

/**
 * Seconds for which a correct password is remembered as a keyed digest, because checking it again
 * takes a tenth of a second.
 */
const REMEMBERED_SECONDS = 300;
const MAX_REMEMBERED = 1000;
/**
 * Maximum number of waiting checks. They run one after the other, so that password guessing leaves
 * processors to other work.
 */
const MAX_WAITING = 32;

export type Verdict = "right" | "wrong" | "busy";

/** The users of one configuration. */
export class Users {
  readonly #stored: ReadonlyMap<string, StoredPassword>;
  readonly #nobody = nobodysPassword();
  readonly #key = randomBytes(32);
  readonly #now: () => number;
  /** When each correct password expires from memory, by digest. */
  readonly #right = new Map<string, number>();
  readonly #running = new Map<string, Promise<Verdict>>();
  #last: Promise<unknown> = Promise.resolve();

  constructor(stored: ReadonlyMap<string, StoredPassword>, now: () => number) {
    this.#stored = stored;
    this.#now = now;
  }

  has(name: string): boolean {
    return this.#stored.has(name);
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
    const stored = this.#stored.get(name);
    const matches = await isPassword(stored ?? this.#nobody, password);
    return stored !== undefined && matches;
  }

  #remember(digest: string): void {
    if (this.#right.size >= MAX_REMEMBERED) this.#right.delete(this.#right.keys().next().value as string);
    this.#right.set(digest, this.#now() + REMEMBERED_SECONDS);
  }
}

/**
 * Returns the users in the options of a host. @throws {ModhostError} OPTION_INVALID, whose message
 * never contains a password
 */
export function readUsers(module: Module<typeof options>): Map<string, StoredPassword> {
  const users = new Map<string, StoredPassword>();
  for (const [name, text] of Object.entries(module.get_option("http_guard_users"))) {
    users.set(name, storedPasswordOf(text, `http_guard_users.${name}`));
  }
  const path = module.get_option("http_guard_users_file");
  if (path === undefined) return users;
  const option = "http_guard_users_file";
  let lines: string[];
  try {
    lines = readFileSync(path, "utf8").split(/\r?\n/);
  } catch (error) {
    const value = JSON.stringify(path);
    const allowed = `that cannot be read: ${reasonOf(error)}`;
    throw new ModhostError("OPTION_INVALID", { name: option, value, allowed }, { cause: error });
  }
  for (const [at, line] of lines.entries()) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const colon = line.indexOf(":");
    users.set(
      line.slice(0, Math.max(colon, 0)),
      storedPasswordOf(line.slice(colon + 1).trim(), `${option}, line ${at + 1},`),
    );
  }
  return users;
}

function storedPasswordOf(text: unknown, name: string): StoredPassword {
  const stored = typeof text === "string" ? readStored(text) : undefined;
  if (stored !== undefined) return stored;
  const allowed = "it must be what `modhost password` prints: $scrypt$ln=15,r=8,p=3$SALT$HASH";
  throw new ModhostError("OPTION_INVALID", { name, value: "***", allowed });
}
