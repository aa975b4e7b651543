/** Operations on the repo. Garbage collection and verification run as jobs. */
import { type Deps, listOf, nodeOperation } from "./operation.ts";

/** Maximum number of faults in the result of a job. */
const MAX_FAULTS = 100;

export const repoOperations = [
  nodeOperation({
    name: "node_gc",
    method: "POST",
    path: "/node/repo/gc",
    scope: "admin",
    help: "Remove all blocks that belong to no pin and no file, as a job",
    response: "Job",
    run: ({ node, jobs, server, by }) => {
      const what = "collect the garbage of the node";
      return jobs.start({
        kind: "gc",
        what,
        by,
        isSingle: true,
        run: (signal, progress) => server.record(what, () => collect(node, signal, progress), { by }),
      });
    },
  }),
  nodeOperation({
    name: "node_verify",
    method: "POST",
    path: "/node/repo/verify",
    scope: "admin",
    help: "Read every block and check its hash, as a job; nothing is changed",
    response: "Job",
    run: async ({ node, jobs, by }) => {
      const { blocks } = await node.lowLevel.stat();
      return jobs.start({
        kind: "verify",
        what: "verify the blocks of the node",
        by,
        isSingle: true,
        total: blocks,
        run: (signal, progress) => verify(node, signal, progress),
      });
    },
  }),
  nodeOperation({
    name: "node_jobs",
    method: "GET",
    path: "/node/jobs",
    scope: "read",
    help: "Long-running work: running jobs and the latest finished ones, the newest first",
    response: listOf("Job"),
    run: ({ jobs }) => jobs.list(),
  }),
  nodeOperation({
    name: "node_job_cancel",
    method: "POST",
    path: "/node/jobs/{id}/cancel",
    scope: "admin",
    help: "Cancel a job",
    input: { id: { type: "string", required: true, describe: "The job's id" } },
    response: "Job",
    run: ({ jobs, input }) => jobs.cancel(input.id),
  }),
];

type Moved = (done: number) => void;

async function collect({ lowLevel, repo }: Deps["node"], signal: AbortSignal, progress: Moved) {
  const before = await lowLevel.stat();
  let removed = 0;
  for await (const { cid } of repo.gc({ signal })) {
    if (cid !== null) removed += 1;
    progress(removed);
  }
  signal.throwIfAborted();
  const after = await lowLevel.stat();
  return { removed, freed: Math.max(0, before.bytes - after.bytes) };
}

async function verify({ repo }: Deps["node"], signal: AbortSignal, moved: Moved) {
  const faults: string[] = [];
  let checked = 0;
  let corrupt = 0;
  try {
    for await (const { msg, progress } of repo.verify({ signal })) {
      checked = Math.max(checked, progress);
      moved(checked);
      if (msg === "" || !msg.startsWith("block ")) continue;
      corrupt += 1;
      if (faults.length < MAX_FAULTS) faults.push(msg);
    }
  } catch (error) {
    // The list of faults is more useful than the error, which only says that there are some.
    if (corrupt === 0) throw error;
    signal.throwIfAborted();
    throw new Error(`${corrupt} of ${checked} blocks are damaged: ${faults.slice(0, 5).join("; ")}`, { cause: error });
  }
  signal.throwIfAborted();
  return { checked };
}
