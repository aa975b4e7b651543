/** Answers beside what was expected of them, and how many differ. */
import { isDeepStrictEqual } from "node:util";

const shown = (value: unknown): string => {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 300 ? `${text.slice(0, 300)}… (${text.length} characters)` : text;
};

export class Report {
  #checks = 0;
  #failed = 0;

  get failed(): number {
    return this.#failed;
  }

  /** A part of its own: what it throws is a difference, and the next part goes on. */
  async part(title: string, work: () => Promise<void>): Promise<void> {
    console.log(`\n# ${title}`);
    const began = performance.now();
    try {
      await work();
    } catch (error) {
      this.#tell(false, "it goes through", (error as Error).message);
    }
    console.log(`  ${((performance.now() - began) / 1000).toFixed(1)} s`);
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
    console.log(`\n# ${sentence}`);
  }

  /** Prints the count. @returns the exit code */
  end(): number {
    console.log(`\n${this.#checks} answers, ${this.#failed} wrong`);
    return this.#failed === 0 && this.#checks > 0 ? 0 : 1;
  }

  #tell(isRight: boolean, what: string, answer: string, expected = "") {
    this.#checks += 1;
    if (!isRight) this.#failed += 1;
    console.log(`  ${isRight ? "ok   " : "WRONG"} ${what}: ${answer}`);
    if (expected !== "" && expected !== answer) console.log(`        expected: ${expected}`);
  }
}

/** Asks until the answer is right, or `milliseconds` are over. @returns the last answer */
export async function untilRight<T>(ask: () => Promise<T>, isRight: (answer: T) => boolean, milliseconds = 5000) {
  const end = performance.now() + milliseconds;
  for (;;) {
    const answer = await ask();
    if (isRight(answer) || performance.now() > end) return answer;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
