/** Which version of go-ipfs the node stands for, and on what it runs. */

/** The level of the API that clients find here. */
export const apiVersion = "0.9.0";

/** The version of repos that this node makes. */
export const repoVersion = "11";

/** Versions of today's reference (Kubo) whose repos are opened as they are, too. */
export const repoVersionsOfToday: readonly string[] = ["16", "17", "18"];

/** Go's words for processors and systems. */
const architectures: Readonly<Record<string, string>> = {
  x64: "amd64",
  ia32: "386",
  ppc64: "ppc64le",
  mipsel: "mipsle",
};
const systems: Readonly<Record<string, string>> = { win32: "windows", sunos: "solaris" };

export interface VersionFacts {
  /** Of the API. */
  readonly version: string;
  readonly commit: string;
  /** Of the repo. */
  readonly repo: string;
  /** Processor and system, such as `amd64/linux`. */
  readonly system: string;
  /** The runtime. */
  readonly golang: string;
}

export function versionFacts(): VersionFacts {
  const { arch, platform, version } = process;
  return {
    version: apiVersion,
    commit: "",
    repo: repoVersion,
    system: `${architectures[arch] ?? arch}/${systems[platform] ?? platform}`,
    golang: `node ${version}`,
  };
}
