/**
 * The process that holds the mounts of a node: `node child.ts`, started by `holder.ts`. The kernel's requests go through
 * it to the node, which answers the kernel itself. What it is told to do comes over the channel between processes; when
 * that closes, the node is gone, and all is unmounted.
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
      // What stands there since is not ours.
      if (!requests.over) await unmount(place.folder, { force });
      await requests.ended;
    }),
  );
}

/** Also when somebody else has unmounted all of them. */
function leave(): Promise<void> {
  leaving ??= leaveAll().finally(() => {
    // Threads that wait for the kernel keep nobody here.
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
// Nobody answers any more: who waits would wait for ever, and whoever unmounts in good order, too.
process.on("disconnect", () => void Promise.all([leaveAll(true), taking.then(() => leaveAll(true))]).then(leave));
