/** Answers beside what was expected of them, and how many differ. */
import { isDeepStrictEqual } from "node:util";

const shown = (value: unknown): string => {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 300 ? `${text.slice(0, 300)}… (${text.length} characters)` : text;
};

export class Report {
  readonly #print: (line: string) => void;
  #checks = 0;
  readonly #wrong: string[] = [];

  /** `quiet`: prints nothing. */
  constructor({ quiet = false }: { readonly quiet?: boolean } = {}) {
    this.#print = quiet ? () => undefined : (line) => console.log(line);
  }

  get checks(): number {
    return this.#checks;
  }

  /** Answers that were not as expected, with what was. */
  get wrong(): readonly string[] {
    return this.#wrong;
  }

  get failed(): number {
    return this.#wrong.length;
  }

  /** A part of its own: what it throws is a difference, and the next part goes on. */
  async part(title: string, work: () => Promise<void>): Promise<void> {
    this.#print(`\n# ${title}`);
    const began = performance.now();
    try {
      await work();
    } catch (error) {
      this.#tell(false, `${title}: it goes through`, (error as Error).message);
    }
    this.#print(`  ${((performance.now() - began) / 1000).toFixed(1)} s`);
  }

  /** The answer has to be the expected one. */
  same(what: string, answer: unknown, expected: unknown): void {
    this.#tell(isDeepStrictEqual(answer, expected), what, shown(answer), shown(expected));
  }

  /** The answer has to be as `expected` says; `holds` is whether it is. */
  holds(what: string, answer: unknown, expected: string, holds: boolean): void {
    this.#tell(holds, what, shown(answer), expected);
  }

  note(sentence: string): void {
    this.#print(`\n# ${sentence}`);
  }

  /** Prints the count. @returns the exit code */
  end(): number {
    this.#print(`\n${this.#checks} answers, ${this.failed} wrong`);
    return this.failed === 0 && this.#checks > 0 ? 0 : 1;
  }

  #tell(isRight: boolean, what: string, answer: string, expected = "") {
    this.#checks += 1;
    if (!isRight) this.#wrong.push(`${what}: ${answer}${expected === "" ? "" : `, expected: ${expected}`}`);
    this.#print(`  ${isRight ? "ok   " : "WRONG"} ${what}: ${answer}`);
    if (expected !== "" && expected !== answer) this.#print(`        expected: ${expected}`);
  }
}

/** Milliseconds for what only has to happen: on a busy machine that may take long. */
const PATIENCE_MS = 120_000;

/**
 * Asks until the answer is right, or `milliseconds` are over, with a pause of `every` milliseconds.
 * @returns the last answer
 */
export async function untilRight<T>(
  ask: () => Promise<T>,
  isRight: (answer: T) => boolean,
  milliseconds = PATIENCE_MS,
  every = 100,
) {
  const end = performance.now() + milliseconds;
  for (;;) {
    const answer = await ask();
    if (isRight(answer) || performance.now() > end) return answer;
    await new Promise((resolve) => setTimeout(resolve, every));
  }
}
