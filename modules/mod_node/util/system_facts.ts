/** Describes the system that the node runs on, for `diag/sys`. */
import { readFile, statfs } from "node:fs/promises";
import { availableParallelism, cpus, networkInterfaces } from "node:os";
import { versionFacts } from "./version.ts";

export type SystemFacts = Awaited<ReturnType<typeof systemFacts>>;

export async function systemFacts(repo: string, online: boolean) {
  const [diskinfo, memory] = await Promise.all([diskFacts(repo), memoryFacts()]);
  const { version, system, golang, commit } = versionFacts();
  const [arch = "", os = ""] = system.split("/");
  return {
    diskinfo,
    environment: { GOPATH: process.env.GOPATH ?? "", IPFS_PATH: repo },
    ipfs_commit: commit,
    ipfs_version: version,
    memory,
    net: { interface_addresses: interfaceAddresses(), online },
    runtime: {
      arch,
      compiler: `v8 ${process.versions.v8}`,
      gomaxprocs: availableParallelism(),
      numcpu: cpus().length,
      numgoroutines: process.getActiveResourcesInfo().length,
      os,
      version: golang,
    },
  };
}

/** Sizes in bytes. `total_space` is the space that users may use, as in go-ipfs. */
async function diskFacts(path: string) {
  const { type, bsize, bfree, bavail } = await statfs(path);
  return { fstype: String(type), free_space: bfree * bsize, total_space: bavail * bsize };
}

/**
 * Sizes in bytes, with 1000 bytes per kilobyte as in go-ipfs. Without `/proc`, it reports what Node
 * knows.
 */
async function memoryFacts() {
  const status = await readFile("/proc/self/status", "utf8").catch(() => "");
  const statusBytes = (name: string) => Number(new RegExp(`^${name}:\\s*(\\d+) kB`, "m").exec(status)?.[1] ?? 0) * 1000;
  return { swap: statusBytes("VmSwap"), virt: statusBytes("VmSize") || process.memoryUsage.rss() };
}

function interfaceAddresses(): string[] {
  return Object.entries(networkInterfaces()).flatMap(([name, addresses = []]) =>
    addresses.map(({ family, address, scopeid }) => {
      if (family === "IPv4") return `/ip4/${address}`;
      return scopeid ? `/ip6zone/${name}/ip6/${address}` : `/ip6/${address}`;
    }),
  );
}
