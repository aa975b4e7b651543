/** The version of go-ipfs that the node implements, and the platform that it runs on. */

/** Version of go-ipfs whose API the node implements. */
export const apiVersion = "0.9.0";

/** Version of the repos that this node creates. */
export const repoVersion = "11";

/** Repo versions of Kubo 0.43 and before that the node also opens as they are. */
export const kuboRepoVersions: readonly string[] = ["16", "17", "18"];

/** Go's names for processors and systems. */
const architectures: Readonly<Record<string, string>> = {
  x64: "amd64",
  ia32: "386",
  ppc64: "ppc64le",
  mipsel: "mipsle",
};
const systems: Readonly<Record<string, string>> = { win32: "windows", sunos: "solaris" };

export interface VersionFacts {
  /** Version of the API. */
  readonly version: string;
  readonly commit: string;
  /** Version of the repo. */
  readonly repo: string;
  /** Processor and system, such as `amd64/linux`. */
  readonly system: string;
  /** Name and version of the runtime. */
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
