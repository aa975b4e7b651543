/** Prints results next to the expected ones, and counts those that differ. */
import { isDeepStrictEqual } from "node:util";

const shown = (value: unknown): string => {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 300 ? `${text.slice(0, 300)}… (${text.length} characters)` : text;
};

export class Report {
  readonly #print: (line: string) => void;
  #checks = 0;
  readonly #wrong: string[] = [];

  /** `quiet`: print nothing. */
  constructor({ quiet = false }: { readonly quiet?: boolean } = {}) {
    this.#print = quiet ? () => undefined : (line) => console.log(line);
  }

  get checks(): number {
    return this.#checks;
  }

  /** Results that differ, with the expected ones. */
  get wrong(): readonly string[] {
    return this.#wrong;
  }

  get failed(): number {
    return this.#wrong.length;
  }

  /** Runs a part of the checks. An error counts as a difference, and the next part runs anyway. */
  async part(title: string, work: () => Promise<void>): Promise<void> {
    this.#print(`\n# ${title}`);
    const began = performance.now();
    try {
      await work();
    } catch (error) {
      this.#record(false, `${title}: runs to its end`, (error as Error).message);
    }
    this.#print(`  ${((performance.now() - began) / 1000).toFixed(1)} s`);
  }

  /** Checks that the result equals the expected one. */
  same(what: string, result: unknown, expected: unknown): void {
    this.#record(isDeepStrictEqual(result, expected), what, shown(result), shown(expected));
  }

  /** Checks a condition: `expected` describes it, and `holds` is whether the result meets it. */
  holds(what: string, result: unknown, expected: string, holds: boolean): void {
    this.#record(holds, what, shown(result), expected);
  }

  note(sentence: string): void {
    this.#print(`\n# ${sentence}`);
  }

  /**
   * Prints the count.
   * @returns the exit code
   */
  end(): number {
    this.#print(`\n${this.#checks} checks, ${this.failed} failed`);
    return this.failed === 0 && this.#checks > 0 ? 0 : 1;
  }

  #record(isRight: boolean, what: string, result: string, expected = "") {
    this.#checks += 1;
    if (!isRight) this.#wrong.push(`${what}: ${result}${expected === "" ? "" : `, expected: ${expected}`}`);
    this.#print(`  ${isRight ? "ok   " : "WRONG"} ${what}: ${result}`);
    if (expected !== "" && expected !== result) this.#print(`        expected: ${expected}`);
  }
}

/** Default timeout in milliseconds. It is long because a busy machine may be slow. */
const PATIENCE_MS = 120_000;

/**
 * Repeats a request until its result is right or `milliseconds` are over, with pauses of `every`
 * milliseconds.
 * @returns the last result
 */
export async function untilRight<T>(
  ask: () => Promise<T>,
  isRight: (result: T) => boolean,
  milliseconds = PATIENCE_MS,
  every = 100,
) {
  const end = performance.now() + milliseconds;
  for (;;) {
    const result = await ask();
    if (isRight(result) || performance.now() > end) return result;
    await new Promise((resolve) => setTimeout(resolve, every));
  }
}
