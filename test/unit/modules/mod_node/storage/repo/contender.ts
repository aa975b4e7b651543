/** A process that tries to lock a folder on request, and reports whether it succeeded. */
import { lockRepo, type RepoLock } from "#node/storage/repo/lock.ts";

const [folder = ""] = process.argv.slice(2);
let lock: RepoLock | undefined;

process.on("message", async (order: "take" | "release") => {
  if (order === "release") {
    await lock?.release();
    lock = undefined;
    process.send?.("released");
    return;
  }
  try {
    lock = await lockRepo(folder);
    process.send?.("won");
  } catch (error) {
    process.send?.((error as Error).message);
  }
});
process.on("disconnect", () => process.exit());
process.send?.("here");
