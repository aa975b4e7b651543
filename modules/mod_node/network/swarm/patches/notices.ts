/**
 * Reports library patches that cannot be applied, once each. The library then works without them.
 */

/** A change to the internals of a library, or to its inputs. */
export interface Patch {
  /** The package whose internals the patch relies on. */
  readonly library: string;
  /** The version that the patch was written for, pinned in package.json. */
  readonly version: string;
  /** The effect of a missing patch, as a clause: "frames are copied once more". */
  readonly without: string;
}

export class PatchNotices {
  readonly #report: (sentence: string) => void;
  readonly #reported = new Set<Patch>();

  constructor(report: (sentence: string) => void = () => undefined) {
    this.#report = report;
  }

  /**
   * Whether all parts that a patch relies on exist; reports the first missing one. @param parts by
   * their names
   */
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
