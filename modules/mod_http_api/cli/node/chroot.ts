/** `modhost node files chroot`: replaces the root of the files of a repo. */
import { type Command, counted, UsageError } from "../../../../core/cli/index.ts";
import { dataFolder, repoFolder } from "./repo.ts";

export const chroot: Command = {
  name: "files chroot",
  arguments: "[CID]",
  help: "Give the files of a repo another root, by default an empty directory; no node may have the repo open",
  options: {
    confirm: {
      type: "boolean",
      help: "Confirm: the next garbage collection removes everything that only the old root refers to",
    },
  },
  async run(context) {
    const { args, options, stdout, stderr } = context;
    const [root, ...more] = args;
    if (more.length > 0) throw new UsageError(`expected 1 argument(s), got ${args.length}`);
    if (options.confirm !== true) {
      throw new UsageError(
        "files chroot replaces the root of the files, and the next garbage collection removes everything that only the old root refers to: add --confirm",
      );
    }
    const { replaceFilesRoot } = await import("modhost/node");
    const { before, after, dropped } = await replaceFilesRoot(repoFolder(context), {
      root,
      data: dataFolder(context),
      onNotice: (sentence) => stderr.write(`${sentence}\n`),
    });
    stdout.write(`The root of the files was ${before ?? "empty"} and is now ${after}.\n`);
    if (dropped > 0)
      stdout.write(
        `${counted(dropped, "change")} since the old root was stored ${dropped === 1 ? "is" : "are"} lost.\n`,
      );
    if (before !== undefined) {
      stdout.write(
        `Nothing was removed yet: to undo this, run \`files chroot --confirm ${before}\` before the next garbage collection.\n`,
      );
    }
    return 0;
  },
};
