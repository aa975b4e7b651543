import type { Requests } from "./peers.ts";

type Work = { readonly [K in keyof Requests]: (parts: Parameters<Requests[K]>[0]) => Promise<ReturnType<Requests[K]>> };

/** Executes the requests of the measuring process one at a time, and ends with it. */
export function serve(address: string, work: Work): void {
  process.on("message", ({ request, parts }: { request: keyof Requests; parts: never }) => {
    work[request](parts).then(
      (value) => process.send?.({ value }),
      (error: Error) => process.send?.({ error: `${error.message}` }),
    );
  });
  process.on("disconnect", () => process.exit());
  process.send?.({ value: address });
}

/** Runs a function several times. Returns the milliseconds that each run took. */
export async function timed(times: number, work: () => Promise<unknown>): Promise<number[]> {
  const took: number[] = [];
  for (let count = 0; count < times; count += 1) {
    const began = performance.now();
    await work();
    took.push(performance.now() - began);
  }
  return took;
}
