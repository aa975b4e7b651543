import type { ModuleState } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { stackOf } from "../util/stack.ts";
import { keyOf } from "./instance.ts";

interface Failure {
  readonly name: string;
  readonly host: string;
  readonly error: unknown;
  readonly file: string | undefined;
}

/** Modules that could not be loaded, and why: values to be shown, not exceptions. */
export class Failures {
  readonly #log: Log;
  readonly #failures = new Map<string, Failure>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** Notes a failure in place of an earlier one, and logs it. */
  add(failure: Failure): void {
    const { name, host, error } = failure;
    this.#failures.set(keyOf(name, host), failure);
    const log = this.#log.of(name, host);
    log.error("%s", reasonOf(error));
    const { cause } = error instanceof Error ? error : {};
    if (cause instanceof Error) log.debug("%s", stackOf(cause));
  }

  /** Forgets those of a module; true when there were any. */
  forget(name: string, host?: string): boolean {
    const gone = [...this.#failures].filter(([, failure]) => {
      return failure.name === name && (host === undefined || failure.host === host || failure.host === "*");
    });
    for (const [key] of gone) this.#failures.delete(key);
    return gone.length > 0;
  }

  /** Errors by `name@host`, without those of some modules. */
  errors(except: readonly string[] = []): Map<string, unknown> {
    const known = [...this.#failures].filter(([, { name }]) => !except.includes(name));
    return new Map(known.map(([key, { error }]) => [key, error]));
  }

  /** The first failure that is a wrong value of the configuration, and none of the module's own. */
  wrongOption(): ModhostError | undefined {
    const causes = [...this.#failures.values()].flatMap(({ error }) => [error, (error as Error | undefined)?.cause]);
    return causes.find((cause): cause is ModhostError => ModhostError.is(cause) && cause.code === "OPTION_INVALID");
  }

  /** Names of those that lack what comes by itself, or need a module that does. */
  late(): readonly string[] {
    return [...new Set([...this.#failures.values()].filter(({ error }) => isLate(error)).map(({ name }) => name))];
  }

  states(): ModuleState[] {
    return [...this.#failures.values()].map(({ name, host, error, file }) => {
      const note = reasonOf(error);
      const late = isLate(error) ? { is_late: true } : {};
      return { name, host, status: "failed", file, note, depends: [], holds: {}, ...late };
    });
  }
}

/** The error, or one that it comes from, says by `retry_after` that it passes by itself. */
function isLate(thrown: unknown): boolean {
  for (let error = thrown; error instanceof Error; error = error.cause) {
    if (typeof (error as { retry_after?: unknown }).retry_after === "number") return true;
  }
  return false;
}
