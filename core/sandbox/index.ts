/** Sandboxed processes. */
export type { CgroupLimits } from "./cgroup.ts";
export { launchAudited, launchSandboxed, moduleProcess, type Sandboxed, sandboxUser } from "./launch.ts";
export { hasLayer, sandboxLayers, sandboxUnavailable } from "./layers.ts";
export type { SandboxLaunch, SandboxLayer, SandboxLimits, SandboxPolicy } from "./policy.ts";
