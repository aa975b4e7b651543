/** Sandboxed processes. */
export { launchSandboxed, moduleProcess, type Sandboxed, sandboxUser } from "./launch.ts";
export { sandboxLayers, sandboxUnavailable } from "./layers.ts";
export type { SandboxLaunch, SandboxLayer, SandboxLimits, SandboxPolicy } from "./policy.ts";
