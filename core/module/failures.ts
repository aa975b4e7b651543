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

  /** Errors by `name@host`. */
  errors(): Map<string, unknown> {
    return new Map([...this.#failures].map(([key, { error }]) => [key, error]));
  }

  /** The first failure that is a wrong value of the configuration, and none of the module's own. */
  wrongOption(): ModhostError | undefined {
    const causes = [...this.#failures.values()].flatMap(({ error }) => [error, (error as Error | undefined)?.cause]);
    return causes.find((cause): cause is ModhostError => ModhostError.is(cause) && cause.code === "OPTION_INVALID");
  }

  states(): ModuleState[] {
    return [...this.#failures.values()].map(({ name, host, error, file }) => {
      return { name, host, status: "failed", file, note: reasonOf(error), depends: [], holds: {} };
    });
  }
}
