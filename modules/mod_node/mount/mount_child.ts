/**
 * The process that holds the mounts of a node: `node mount_child.ts`, started by
 * `mount_process.ts`. It passes the kernel's requests to the node, which replies to the kernel
 * itself. Commands come over the IPC channel; when that closes, the node is gone and everything is
 * unmounted.
 */
import {
  type Command,
  descriptorsOf,
  type MountSpec,
  mount,
  type Reply,
  type Requests,
  reasonIn,
  unmount,
} from "./mount_ops.ts";

let mounted: readonly { readonly place: MountSpec; readonly requests: Requests }[] = [];
let leaving: Promise<void> | undefined;

function tell(answer: Reply): void {
  process.send?.(answer, undefined, undefined, () => undefined);
}

async function take(places: readonly MountSpec[]): Promise<void> {
  const done: { place: MountSpec; requests: Requests }[] = [];
  mounted = done;
  try {
    for (const [at, place] of places.entries()) {
      const requests = await mount(place, descriptorsOf(at));
      done.push({ place, requests });
    }
    void Promise.all(done.map(({ requests }) => requests.ended)).then(() => leave());
    if (leaving === undefined) tell({ mounted: true });
  } catch (error) {
    await leaveAll();
    tell({ failed: reasonIn(error) });
  }
}

async function leaveAll(force = false): Promise<void> {
  await Promise.all(
    mounted.map(async ({ place, requests }) => {
      // Something else may have been mounted there since.
      if (!requests.over) await unmount(place.folder, { force });
      await requests.ended;
    }),
  );
}

/** Also called when somebody else has unmounted everything. */
function leave(): Promise<void> {
  leaving ??= leaveAll().finally(() => {
    // Threads that wait for the kernel must not keep the process alive.
    process.kill(process.pid, "SIGKILL");
  });
  return leaving;
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
let taking: Promise<void> = Promise.resolve();
process.on("message", (order: Command) => {
  if ("mount" in order) taking = take(order.mount);
  else void taking.then(leave);
});
// Nobody replies any more: callers would wait for ever, and so would an ordinary unmount.
process.on("disconnect", () => void Promise.all([leaveAll(true), taking.then(() => leaveAll(true))]).then(leave));
