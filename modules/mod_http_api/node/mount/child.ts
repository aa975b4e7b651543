/**
 * The process that holds the mounts of a node: `node child.ts`, started by `holder.ts`. The kernel's requests go through
 * it to the node, and answers back, each as it is. What it is told to do comes over the channel between processes; when
 * that closes, the node is gone, and all is unmounted.
 */
import { type Answer, type Device, firstChannel, mount, type Order, type Place, reasonIn, unmount } from "./device.ts";

let mounted: readonly { readonly place: Place; readonly device: Device }[] = [];
let leaving: Promise<void> | undefined;

function tell(answer: Answer): void {
  process.send?.(answer, undefined, undefined, () => undefined);
}

async function take(places: readonly Place[]): Promise<void> {
  const done: { place: Place; device: Device }[] = [];
  mounted = done;
  try {
    for (const [at, place] of places.entries()) {
      const device = await mount(place, firstChannel + at);
      done.push({ place, device });
    }
    void Promise.all(done.map(({ device }) => device.ended)).then(leave);
    if (leaving === undefined) tell({ mounted: true });
  } catch (error) {
    await leaveAll();
    tell({ failed: reasonIn(error) });
  }
}

async function leaveAll(): Promise<void> {
  await Promise.all(
    mounted.map(async ({ place, device }) => {
      await unmount(place.folder);
      await device.ended;
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
process.on("message", (order: Order) => {
  if ("mount" in order) taking = take(order.mount);
  else void taking.then(leave);
});
process.on("disconnect", () => void taking.then(leave));
