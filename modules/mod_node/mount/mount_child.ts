/**
 * The mount process of a node: `node mount_child.ts`, started by `mount_process.ts`. It mounts, and
 * passes the kernel's requests to the node, which sends replies directly to the kernel. Commands
 * come over the IPC channel. When that closes, the node has ended, and everything is unmounted.
 */
import {
  descriptorsOf,
  type MountCommand,
  type MountReply,
  type MountRequests,
  type MountSpec,
  mount,
  reasonIn,
  unmount,
} from "./mount_ops.ts";

let mounted: readonly { readonly spec: MountSpec; readonly requests: MountRequests }[] = [];
let leaving: Promise<void> | undefined;

function report(result: MountReply): void {
  process.send?.(result, undefined, undefined, () => undefined);
}

async function mountAll(specs: readonly MountSpec[]): Promise<void> {
  const done: { spec: MountSpec; requests: MountRequests }[] = [];
  mounted = done;
  try {
    for (const [at, spec] of specs.entries()) {
      const requests = await mount(spec, descriptorsOf(at));
      done.push({ spec, requests });
    }
    void Promise.all(done.map(({ requests }) => requests.ended)).then(() => leave());
    if (leaving === undefined) report({ mounted: true });
  } catch (error) {
    await leaveAll();
    report({ failed: reasonIn(error) });
  }
}

async function leaveAll(force = false): Promise<void> {
  await Promise.all(
    mounted.map(async ({ spec, requests }) => {
      // Another file system may have been mounted there meanwhile.
      if (!requests.over) await unmount(spec.folder, { force });
      await requests.ended;
    }),
  );
}

/** Unmounts everything and ends the process. Also called when others have unmounted everything. */
function leave(): Promise<void> {
  leaving ??= leaveAll().finally(() => {
    // Threads that wait for the kernel must not keep the process running.
    process.kill(process.pid, "SIGKILL");
  });
  return leaving;
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
let mounting: Promise<void> = Promise.resolve();
process.on("message", (order: MountCommand) => {
  if ("mount" in order) mounting = mountAll(order.mount);
  else void mounting.then(leave);
});
// The node no longer replies. Callers, and also an ordinary unmount, would wait forever.
process.on("disconnect", () => void Promise.all([leaveAll(true), mounting.then(() => leaveAll(true))]).then(leave));
