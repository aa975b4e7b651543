import type { ModuleState } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { stackOf } from "../util/stack.ts";
import { keyOf } from "./instance.ts";
import type { ModuleContext } from "./module_context.ts";

interface Failure {
  readonly name: string;
  readonly host: string;
  readonly error: unknown;
  readonly file: string | undefined;
}

/** Modules that could not be loaded, with the reasons: stored to be shown, not thrown. */
export class Failures {
  readonly #log: ModuleContext["log"];
  readonly #failures = new Map<string, Failure>();

  constructor(log: ModuleContext["log"]) {
    this.#log = log;
  }

  /** Stores a failure instead of an earlier one of the same instance, and logs it. */
  add(failure: Failure): void {
    const { name, host, error } = failure;
    this.#failures.set(keyOf(name, host), failure);
    const log = this.#log.of(name, host);
    log.error("%s", reasonOf(error));
    const { cause } = error instanceof Error ? error : {};
    if (cause instanceof Error) log.debug("%s", stackOf(cause));
  }

  /** Removes the failures of a module; returns true if there were any. */
  forget(name: string, host?: string): boolean {
    const gone = [...this.#failures].filter(([, failure]) => {
      return failure.name === name && (host === undefined || failure.host === host || failure.host === "*");
    });
    for (const [key] of gone) this.#failures.delete(key);
    return gone.length > 0;
  }

  /** Returns errors by `name@host`, without those of some modules. */
  errors(except: readonly string[] = []): Map<string, unknown> {
    const known = [...this.#failures].filter(([, { name }]) => !except.includes(name));
    return new Map(known.map(([key, { error }]) => [key, error]));
  }

  /** Returns the first failure that was caused by a wrong value in the configuration. */
  wrongOption(): ModhostError | undefined {
    const causes = [...this.#failures.values()].flatMap(({ error }) => [error, (error as Error | undefined)?.cause]);
    return causes.find((cause): cause is ModhostError => ModhostError.is(cause) && cause.code === "OPTION_INVALID");
  }

  /**
   * Returns the names of modules that failed because something is missing that will appear by
   * itself, or that depend on such a module.
   */
  late(): readonly string[] {
    return [...new Set([...this.#failures.values()].filter(({ error }) => isLate(error)).map(({ name }) => name))];
  }

  states(): Omit<ModuleState, "run">[] {
    return [...this.#failures.values()].map(({ name, host, error, file }) => {
      const note = reasonOf(error);
      const late = isLate(error) ? { is_late: true } : {};
      return { name, host, status: "failed", file, note, depends: [], holds: {}, ...late };
    });
  }
}

/**
 * Returns true if the error or one of its causes has `retry_after`: the problem will go away by
 * itself.
 */
function isLate(thrown: unknown): boolean {
  for (let error = thrown; error instanceof Error; error = error.cause) {
    if (typeof (error as { retry_after?: unknown }).retry_after === "number") return true;
  }
  return false;
}
