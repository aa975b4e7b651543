/** Which patches of libraries cannot be applied, told once each: then the library's own way is taken. */

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
  readonly #tell: (sentence: string) => void;
  readonly #told = new Set<Patch>();

  constructor(tell: (sentence: string) => void = () => undefined) {
    this.#tell = tell;
  }

  /** Whether all parts that a patch relies on are there; told when one is not. @param parts by the name to be told */
  isApplicable(patch: Patch, parts: Readonly<Record<string, unknown>>): boolean {
    for (const name in parts) {
      if (parts[name] !== undefined) continue;
      if (!this.#told.has(patch)) {
        this.#told.add(patch);
        const { library, version, without } = patch;
        this.#tell(`${library} has no ${name} as version ${version} had: ${without}`);
      }
      return false;
    }
    return true;
  }
}
