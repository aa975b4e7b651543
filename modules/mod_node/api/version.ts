/** The version of the node and of its dependencies. */
import { installedPackages, ownPackage } from "../util/packages.ts";
import { type VersionFacts, versionFacts } from "../util/version.ts";
import type { CallOptions } from "./common.ts";

/** An installed package. */
export interface VersionDependency {
  /** Its name. */
  readonly path: string;
  readonly version: string;
  readonly replacedBy: string;
  /** Checksum from a lock file; "" if none lists the package. */
  readonly sum: string;
}

export interface VersionApi {
  readonly version: {
    (options?: CallOptions): Promise<VersionFacts>;
    /** The installed packages: modhost itself, then its dependencies, by name and version. */
    deps(options?: CallOptions): AsyncIterable<VersionDependency>;
  };
  /** How to update, in sentences. */
  update(options?: CallOptions): Promise<string>;
}

async function* deps(): AsyncGenerator<VersionDependency> {
  for (const { name: path, version, integrity: sum } of await installedPackages()) {
    yield { path, version, replacedBy: "", sum };
  }
}

export function versionApi(): VersionApi {
  return {
    version: Object.assign(async () => versionFacts(), { deps }),
    async update() {
      const { name, version: own } = await ownPackage();
      const { version, repo, golang } = versionFacts();
      return (
        `${name} ${own}: API ${version}, repo ${repo}, ${golang}\n` +
        `Updates come through npm: \`npm view ${name} versions\` lists them, \`npm install ${name}@VERSION\` installs ` +
        "one (with --global where it was installed so). The host runs it from its next start on.\n"
      );
    },
  };
}
