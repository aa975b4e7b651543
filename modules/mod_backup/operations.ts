/** The backup operations of the Admin API. */
import { defineOperation, HttpError, reasonOf } from "../../core/index.ts";
import type { AdminOperation } from "../../core/types.ts";
import { type Backups, nothing } from "./backups.ts";
import type { BackupLine, BackupRequest } from "./types.ts";

/** Milliseconds between two lines of a response. */
const LINE_EVERY_MS = 200;

const state = { $ref: "#/components/schemas/BackupState" };

/** Without `backups`, the operations can be listed but not run. */
export const operationsOf = (backups: Backups = {} as Backups): readonly AdminOperation[] => [
  defineOperation({
    name: "backup_run",
    method: "POST",
    path: "/backup",
    scope: "admin",
    help: "Back up the host. The response is a line of JSON for each step; the last one is done or failed",
    input: {
      to: {
        type: "string",
        describe:
          "A folder or s3://BUCKET/PREFIX, accepted only through the admin socket; default: the option backup_to",
      },
      key_file: {
        type: "string",
        describe:
          "File with the key for encryption, accepted only through the admin socket; default: the option backup_key_file",
      },
      keep: { type: "number", describe: "Number of latest snapshots to keep; default: all" },
      detach: {
        type: "boolean",
        describe: "Continue when the caller disconnects; default: the backup is then cancelled",
      },
    },
    response: { type: "string", format: "binary" },
    isRaw: true,
    run({ by, viaSocket, event, input: { to, key_file, keep, detach = false } }) {
      // A token must not let its owner write to arbitrary files.
      if ((to !== undefined || key_file !== undefined) && !viaSocket)
        throw new HttpError(403, "Another destination or key is accepted only from callers of the admin socket");
      if (keep !== undefined && !(Number.isInteger(keep) && keep > 0))
        throw new HttpError(400, "The field keep must be a whole number from 1 on");
      if (backups.state.running !== undefined)
        throw new HttpError(409, `A backup has been running since ${backups.state.running.began}`);
      return {
        headers: { content_type: "application/x-ndjson", cache_control: "no-store", x_accel_buffering: "no" },
        body: lines(backups, {
          request: { to, key_file, keep },
          by,
          gone: detach ? undefined : event.request.signal,
        }),
      };
    },
  }),
  defineOperation({
    name: "backup_state",
    method: "GET",
    path: "/backup",
    scope: "read",
    help: "The running backup, and the result of the latest one since the start",
    response: state,
    run: () => backups.state,
  }),
  defineOperation({
    name: "backup_cancel",
    method: "POST",
    path: "/backup/cancel",
    scope: "admin",
    help: "Cancel the running backup: earlier snapshots are unchanged",
    response: state,
    async run() {
      if (!(await backups.cancel())) throw new HttpError(409, "No backup is running");
      return backups.state;
    },
  }),
];

interface BackupCall {
  readonly request: BackupRequest;
  readonly by: string;
  /**
   * Aborts when the caller disconnects; undefined when the backup should continue without the
   * caller.
   */
  readonly gone: AbortSignal | undefined;
}

/** Yields the lines of a response. A reader who stops ends the backup, unless it is detached. */
async function* lines(backups: Backups, { request, by, gone }: BackupCall): AsyncGenerator<string> {
  const leaving = new AbortController();
  const signal = AbortSignal.any([leaving.signal, ...(gone === undefined ? [] : [gone])]);
  let latest: BackupLine = { progress: nothing };
  let isOver = false;
  const last = backups
    .run(request, {
      by,
      signal,
      progress: (progress) => {
        latest = { progress };
      },
    })
    .then(
      (done): BackupLine => ({ done }),
      (error: unknown): BackupLine => ({ failed: reasonOf(error) }),
    )
    .finally(() => {
      isOver = true;
    });
  try {
    while (!isOver) {
      yield `${JSON.stringify(latest)}\n`;
      const { promise: due, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, LINE_EVERY_MS);
      await Promise.race([due, last]);
      clearTimeout(timer);
    }
    yield `${JSON.stringify(await last)}\n`;
  } finally {
    if (gone !== undefined) leaving.abort(new Error("The caller has disconnected"));
  }
}
