/** Words that rules of names and prose reject, and that stay in some files, with the reason. */
import type { Finding } from "./rules.ts";

interface Exception {
  readonly path: string;
  readonly words: readonly string[];
  readonly reason: string;
}

const EXCEPTIONS: readonly Exception[] = [];

export class Exceptions {
  readonly #unused: Map<string, Set<string>>;
  readonly #words: ReadonlyMap<string, ReadonlySet<string>>;

  constructor(exceptions: readonly Pick<Exception, "path" | "words">[] = EXCEPTIONS) {
    this.#words = new Map(exceptions.map(({ path, words }) => [path, new Set(words)]));
    this.#unused = new Map(exceptions.map(({ path, words }) => [path, new Set(words)]));
  }

  /** Removes the findings that an exception allows. */
  filter(path: string, findings: readonly Finding[]): readonly Finding[] {
    const words = this.#words.get(path);
    if (words === undefined) return findings;
    for (const { word } of findings) if (word !== undefined) this.#unused.get(path)?.delete(word);
    return findings.filter(({ word }) => word === undefined || !words.has(word));
  }

  /** Lists exceptions that no finding has needed. Call it after all files have been checked. */
  unused(): Finding[] {
    return [...this.#unused].flatMap(([path, words]) =>
      [...words].map((word) => ({
        line: 0,
        rule: "no finding needs this exception: remove it",
        text: `${path}: ${word}`,
      })),
    );
  }
}
