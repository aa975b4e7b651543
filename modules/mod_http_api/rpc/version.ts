/** Which version of the API this is, and on what it runs. */

/** The level of the API that clients find here. */
export const apiVersion = "0.9.0";

/** The format of a repo. */
export const repoVersion = "11";

/** As clients and servers of this API call themselves, less the commit. */
export const apiAgent = `/go-ipfs/${apiVersion}/`;

/** Go's words for processors and systems. */
const architectures: Readonly<Record<string, string>> = {
  x64: "amd64",
  ia32: "386",
  ppc64: "ppc64le",
  mipsel: "mipsle",
};
const systems: Readonly<Record<string, string>> = { win32: "windows", sunos: "solaris" };

export interface VersionFacts {
  readonly Version: string;
  readonly Commit: string;
  readonly Repo: string;
  /** Processor and system. */
  readonly System: string;
  /** The runtime. */
  readonly Golang: string;
}

export function versionFacts(): VersionFacts {
  const { arch, platform, version } = process;
  return {
    Version: apiVersion,
    Commit: "",
    Repo: repoVersion,
    System: `${architectures[arch] ?? arch}/${systems[platform] ?? platform}`,
    Golang: `node ${version}`,
  };
}
