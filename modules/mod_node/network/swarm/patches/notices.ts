/** Reports patches of libraries that cannot be applied, once each. The library then works in its own way. */

/** A change to the insides of a library, or to what it is given. */
export interface Patch {
  /** The package whose insides the patch relies on. */
  readonly library: string;
  /** The version that it was written for, pinned in package.json. */
  readonly version: string;
  /** What happens without the patch, as a clause: "frames are copied once more". */
  readonly without: string;
}

export class PatchNotices {
  readonly #report: (sentence: string) => void;
  readonly #reported = new Set<Patch>();

  constructor(report: (sentence: string) => void = () => undefined) {
    this.#report = report;
  }

  /** Whether all parts that a patch relies on are there; reports when one is missing. @param parts by their names */
  isApplicable(patch: Patch, parts: Readonly<Record<string, unknown>>): boolean {
    for (const name in parts) {
      if (parts[name] !== undefined) continue;
      if (!this.#reported.has(patch)) {
        this.#reported.add(patch);
        const { library, version, without } = patch;
        this.#report(`${library} has no ${name} as version ${version} had: ${without}`);
      }
      return false;
    }
    return true;
  }
}
